"""CPU and wall seconds by name."""

import ctypes
import functools
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Item = TypeVar("Item")


@dataclass
class Clock:
    """Adds up what is spent under each name, by all threads of this process."""

    cpu: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Count the seconds of a block."""
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu[name] = self.cpu.get(name, 0) + time.process_time() - cpu
            self.wall[name] = self.wall.get(name, 0) + time.perf_counter() - wall

    def timed(
        self, name: str, function: Callable[Parameters, Result]
    ) -> Callable[Parameters, Result]:
        """Return the function with its seconds counted."""

        @functools.wraps(function)
        def counted(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            with self.measure(name):
                return function(*args, **kwargs)

        return counted

    def timed_items(self, name: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items with the seconds counted that each takes to come."""
        iterator = iter(items)
        while True:
            with self.measure(name):
                found = list(_first(iterator))
            if not found:
                return
            yield found[0]


def _first(iterator: Iterator[Item]) -> Iterator[Item]:
    for item in iterator:
        yield item
        return


def children_cpu() -> float:
    """Return the CPU seconds of all processes begun from here; waits until all have ended.

    A run's workers are children of a server of theirs, which outlives the run by a moment: from the
    first call on, processes whose parents end become children of this one.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


_PR_SET_CHILD_SUBREAPER = 36
