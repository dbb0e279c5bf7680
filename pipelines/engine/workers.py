"""Worker processes on this machine, and what happens when one of them dies.

Beam's own multi-processing ends or hangs with the first worker that dies, and deals tasks out in
advance. Here each worker is a child process that runs a task and gets the next one when it is done.
The driver knows which task a dead child was running, starts another child and tries again. A task
whose child died twice is tried once more with nothing running beside it, so that it is not blamed
for the memory that others take.

Children are forked from a process that has only imported modules (multiprocessing's fork server):
imports cost a second of CPU, models must not be loaded before a fork, since their libraries start
threads. What they run is a function of a module, so they leave the driver's script alone: it needs
no `if __name__ == "__main__"`.
"""

import itertools
import logging
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from typing import Any, TypeVar

from pipelines.engine.imports import keep_pandas_out
from shards.command import log_errors
from shards.errors import DamageError, UserError
from shards.extras import end_telling
from shards.memory import is_lack_of_memory

MOST_DEATHS = 3
"""Children a task may cost before it is given up; a task's own `most_deaths` overrides it."""


_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_LOG = logging.getLogger("corpusmill")


def num_workers(requested: int, *, work_bytes: int) -> int:
    """Return how many worker processes to start; 0 runs the tasks in this process.

    A worker takes as long to start as some megabytes of text to map, so that many get none.

    Args:
        requested: The value of --workers; 0 leaves the choice to this function.
        work_bytes: Bytes of input to map.
    """
    cores = len(os.sched_getaffinity(0))
    return requested or min(cores, work_bytes // (8 << 20))


@dataclass
class _Child:
    process: ForkServerProcess
    pipe: "Connection[Any, Any]"
    task: Any = None


@dataclass
class Workers:
    """A pool of children; as a context manager it ends them."""

    num_workers: int
    run: Callable[[bytes, Any], object]
    """What a child calls for each task: run(payload, task); what it returns is not used."""
    preload: Sequence[str] = ()
    """Modules that children find imported, where they are the first of this process."""
    _children: list[_Child] = field(default_factory=list)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.process.kill()
            child.process.join()
            child.pipe.close()
        self._children.clear()

    def run_all(self, tasks: Sequence[Any], payload: bytes) -> None:
        """Run each task in one of the children and return when all are done.

        Args:
            tasks: Small picklable records.
            payload: Passed to the child's function with every task.

        Raises:
            UserError: A task raised it.
            UserError: A task has cost MOST_DEATHS children.
            RuntimeError: A task raised anything else; the message is its traceback.
        """
        waiting = deque(tasks)
        deaths: Counter[Any] = Counter()
        busy: list[_Child] = []
        while waiting or busy:
            self._hand_out(waiting, busy, deaths=deaths, payload=payload)
            ready = set(wait([child.pipe for child in busy]))
            for child in [child for child in busy if child.pipe in ready]:
                busy.remove(child)
                if not self._finished(child):
                    deaths[child.task] += 1
                    self._bury(child, deaths[child.task])
                    waiting.append(child.task)

    def call(self, function: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
        """Return function(argument), called in a child that later also runs tasks.

        What it logs as a warning is logged here.

        Raises:
            UserError: The function raised it, or MOST_DEATHS children died of it.
            RuntimeError: It raised anything else; the message is its traceback.
        """
        for deaths in itertools.count(1):
            child = self._idle(())
            with suppress(BrokenPipeError):
                child.pipe.send((_with_warnings, (function, argument)))
            try:
                result, warnings = _received(child)
                break
            except (EOFError, ConnectionResetError):
                self._remove(child)
            if deaths == MOST_DEATHS:
                raise UserError(
                    f"a worker died {deaths} times when it began, the last time because "
                    f"{_cause(child.process.exitcode)}. Finished work is kept; the same command "
                    "tries again"
                )
        for warning in warnings:
            _LOG.warning("%s", warning)
        return result  # type: ignore[no-any-return]  # what came through the pipe

    def _hand_out(
        self, waiting: deque[Any], busy: list[_Child], *, deaths: Counter[Any], payload: bytes
    ) -> None:
        """Give waiting tasks to idle children; a task whose child died twice runs alone."""
        while waiting and len(busy) < self.num_workers:
            alone = deaths[waiting[0]] >= MOST_DEATHS - 1
            if busy and (alone or any(deaths[child.task] >= MOST_DEATHS - 1 for child in busy)):
                return
            child = self._idle(busy)
            child.task = waiting.popleft()
            # A child that died while idle is noticed as one that dies at its task.
            with suppress(BrokenPipeError):
                child.pipe.send((self.run, (payload, child.task)))
            busy.append(child)

    def _idle(self, busy: Sequence[_Child]) -> _Child:
        for child in [child for child in self._children if child not in busy]:
            if child.process.is_alive():
                return child
            self._children.remove(child)  # it died while idle
            child.pipe.close()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*self.preload])
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        try:
            with _script_left_alone():
                process.start()
        except (OSError, EOFError) as error:  # the process that workers are forked from has died
            reason = str(error) or type(error).__name__
            raise UserError(
                f"no worker can be started ({reason}): most likely there is not enough memory, or "
                "a limit on memory or processes is too low (ulimit -v, ulimit -u). Finished work "
                "is kept; the same command tries again"
            ) from error
        theirs.close()
        self._children.append(_Child(process, ours))
        return self._children[-1]

    def _finished(self, child: _Child) -> bool:
        """Return whether the child finished its task; False if it died."""
        try:
            _received(child)
        except (EOFError, ConnectionResetError):
            return False
        return True

    def _remove(self, child: _Child) -> None:
        """Forget a child that has died."""
        child.process.join()
        self._children.remove(child)
        child.pipe.close()

    def _bury(self, child: _Child, deaths: int) -> None:
        self._remove(child)
        if deaths >= getattr(child.task, "most_deaths", MOST_DEATHS):
            raise UserError(
                f"a worker died {deaths} times at the same task, the last time with nothing "
                f"running beside it: {_cause(child.process.exitcode)}. The task: {child.task}. "
                "Finished work is kept; the same command tries again"
            )


@contextmanager
def _script_left_alone() -> Iterator[None]:
    """Keep children that are started meanwhile from importing the script of this process.

    They would run all of it that is not guarded: the very build that starts them. multiprocessing
    imports it for the sake of functions that are defined there, but nothing where it is called
    `….__main__`, as those of packages are.
    """
    script = sys.modules["__main__"]
    spec = getattr(script, "__spec__", None)
    script.__spec__ = ModuleSpec("corpusmill.__main__", None)
    try:
        yield
    finally:
        script.__spec__ = spec


def _received(child: _Child) -> Any:
    """Return what a child's function returned, or raise what it raised."""
    error_type, value = child.pipe.recv()
    if error_type is not None:
        raise error_type(value)
    return value


def _with_warnings(
    function: Callable[[_Argument], _Result], argument: _Argument
) -> tuple[_Result, list[str]]:
    """Return what a function returns, and the warnings of this package meanwhile."""
    handler = _Warnings(logging.WARNING)
    own = logging.getLogger("pipelines")
    own.addHandler(handler)
    own.setLevel(logging.WARNING)
    own.propagate = False  # the driver says them
    try:
        return function(argument), handler.messages
    finally:
        own.removeHandler(handler)
        own.setLevel(logging.NOTSET)
        own.propagate = True


class _Warnings(logging.Handler):
    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _cause(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "it was killed, most likely for lack of memory"
    if code is not None and code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it exited with code {code}"


def _serve(pipe: "Connection[Any, Any]") -> None:
    """Run tasks until the driver ends; what a task raises is sent back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    keep_pandas_out()
    end_telling()
    log_errors()  # what libraries warn of, the driver has shown
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        except Exception as error:
            if is_lack_of_memory(error):
                os.kill(os.getpid(), signal.SIGKILL)
            raise
        outcome: tuple[type[Exception] | None, Any]
        try:
            outcome = None, function(*arguments)
        except UserError as error:
            outcome = DamageError if isinstance(error, DamageError) else UserError, str(error)
        except Exception as error:  # noqa: BLE001 - the driver raises it, whatever it is
            outcome = RuntimeError, traceback.format_exc()
            if is_lack_of_memory(error):
                outcome = MemoryError, str(error)
        pipe.send(outcome)


def _end_with_parent() -> None:
    """End this process when the driver ends: a killed run leaves no workers behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
