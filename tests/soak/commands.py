"""Commands of the product, run through `tests/forks.py`, which may be killed at any moment."""

import importlib
import os
import pathlib
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests import forks

LIMIT = 240.0
"""Seconds that a command may take on a busy machine."""
MEMORY_BYTES = 3 << 30
"""Limit of a forked one besides shared memory; the model of languages is a third of that."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    words: tuple[str, ...]
    code: int
    """As subprocess has it: -9 if it was killed."""
    output: str
    seconds: float

    @property
    def said(self) -> str:
        """Its last paragraph."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else ""


@dataclass
class Trap:
    """An action at the n-th time that a command is about to change the disk."""

    nth: int
    action: Callable[[], None]
    seen: int = 0

    def set(self) -> None:
        """Set it in this process."""
        self._wrap(pathlib.Path, "replace")
        self._wrap(pathlib.Path, "unlink")
        self._wrap(shutil, "rmtree")
        self._wrap(os, "fsync")

    def _wrap(self, owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def trapped(*arguments: Any, **named: Any) -> Any:
            self.seen += 1
            if self.seen == self.nth:
                self.action()
            return function(*arguments, **named)

        setattr(owner, name, trapped)


def kill_group() -> None:
    os.killpg(0, signal.SIGKILL)


@dataclass
class Started:
    """A command that runs."""

    words: tuple[str, ...]
    job: forks.RunningJob
    log: Path
    began: float = field(default_factory=time.monotonic)

    def poll(self) -> bool:
        """Return whether it has ended."""
        return self.job.wait(0) is not None

    def wait(self) -> Done:
        """Return how it ended; raise TimeoutError if it does not, after killing it."""
        code = self.job.wait(LIMIT)
        if code is None:
            self.kill()
            raise TimeoutError(f"{' '.join(self.words)} did not end in {LIMIT:.0f} s")
        output = self.log.read_text(errors="backslashreplace")
        return Done(self.words, code, output, time.monotonic() - self.began)

    def kill(self) -> None:
        """Kill it and all its processes."""
        for process in self._children():
            _kill(process.pid)
        self.job.kill()

    def kill_worker(self, rng: random.Random) -> bool:
        """Kill one of its workers; return whether there was one."""
        workers = [child for child in self._children() if _is_worker(child)]
        if workers:
            _kill(rng.choice(workers).pid)
        return bool(workers)

    def _children(self) -> Sequence[psutil.Process]:
        """Return its processes besides itself that do tasks."""
        try:
            return psutil.Process(self.job.pid).children(recursive=True)
        except psutil.Error:
            return []


def _is_worker(process: psutil.Process) -> bool:
    """Return whether it is a grandchild: children are the fork server and the tracker."""
    try:
        parent = process.parent()
        return parent is not None and "forkserver" in " ".join(parent.cmdline())
    except psutil.Error:
        return False


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def start(
    words: Sequence[str],
    *,
    log: Path,
    trap: Trap | None = None,
    constants: Mapping[str, Mapping[str, int]] | None = None,
    forked: bool = True,
) -> Started:
    """Start a command.

    Args:
        words: The module and its flags.
        log: Where its output goes.
        trap: An action while it works; forked ones only.
        constants: By module, constants of it that are set first; forked ones only.
        forked: Fork a process that has imported the product; or start Python anew.
    """
    asked = forks.Job(
        words=words,
        folder=str(forks.ROOT),
        outputs=[str(log), str(log)],
        new_process=not forked,
        pickled=forks.pickled_call(partial(_prepare, trap, constants or {})),
    )
    return Started(tuple(words), forks.start(words[0].partition(".")[0], asked), log)


def _prepare(trap: Trap | None, constants: Mapping[str, Mapping[str, int]]) -> None:
    """Make this process, a fork, what a command is to run in."""
    os.setpgid(0, 0)
    present = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (present + MEMORY_BYTES, resource.RLIM_INFINITY))
    if constants:  # after a death, tasks run in a worker, which would not have them
        importlib.import_module("pipelines.job.build").died_before = lambda _: False  # type: ignore[attr-defined]
    for module, values in constants.items():
        for name, value in values.items():
            setattr(importlib.import_module(module), name, value)
    if trap:
        trap.set()
