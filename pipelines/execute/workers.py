"""Worker processes on this machine; if a process dies, a new process repeats its item.

Beam's own multi-processing ends or hangs when the first worker dies, and assigns items in advance.
Here each worker is a child process that runs an item and then gets the next one. If a child dies,
the driver knows its item, starts another child and tries the item again. An item whose children
died twice is tried once more while nothing else runs, because other items may have used up the
memory.

Children are forked from a process that has only imported modules (multiprocessing's fork server),
because imports cost a second of CPU. Models must not be loaded before a fork, since their libraries
start threads. Children run a function of a module and do not import the driver's script, so the
script needs no `if __name__ == "__main__"`.
"""

import logging
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from typing import Any, TypeVar

from pipelines.execute.attempt import ATTEMPT
from pipelines.execute.imports import block_pandas_import
from shards.commands.command import log_errors
from shards.errors import DamageError, UserError
from shards.memory import is_out_of_memory

MAX_DEATHS = 3
"""The number of children that may die at an item before the run fails; an item's own `max_deaths`
overrides it."""


_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


def num_workers(requested: int, *, work_bytes: int) -> int:
    """Return how many worker processes to start; if it is 0, items run in this process.

    Starting a worker takes as long as processing some megabytes of text, so small inputs get few or
    no workers.

    Args:
        requested: The value of --workers; 0 leaves the choice to this function.
        work_bytes: The number of bytes of input to process.
    """
    cores = len(os.sched_getaffinity(0))
    return requested or min(cores, work_bytes // (8 << 20))


@dataclass(eq=False)
class _Call:
    """A function call for a child, with its state."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    item: Any
    """The item, which names the call in messages."""
    place: str = ""
    """The part of the item that the child works on, if the child has reported it."""
    deaths: tuple[str, ...] = ()
    """The places where children died during the call."""
    result: Any = None

    @property
    def suspect(self) -> bool:
        """Whether the call runs alone, because the item may have caused the deaths."""
        return len(self.deaths) >= MAX_DEATHS - 1


@dataclass(eq=False)
class _Child:
    process: ForkServerProcess
    pipe: "Connection[Any, Any]"


@dataclass
class Workers:
    """A pool of child processes; as a context manager, it ends its children."""

    num_workers: int
    run: Callable[[bytes, Any], object]
    """The function that a child calls for each item: run(payload, item); the result is ignored."""
    preload: Sequence[str] = ()
    """Modules that are imported once, before the first child of this process starts."""
    _children: list[_Child] = field(default_factory=list)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for child in [*self._children]:
            child.process.kill()
            self._remove(child)

    def run_all(self, items: Sequence[Any], payload: bytes) -> None:
        """Run each item in one of the children and return when all are done.

        Args:
            items: Small picklable records.
            payload: The first argument of `run` for every item.

        Raises:
            UserError: An item raised it.
            UserError: MAX_DEATHS children died at an item.
            RuntimeError: An item raised a different error; the message is the traceback.
        """
        self._finish([_Call(self.run, (payload, item), item) for item in items])

    def call(self, function: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
        """Return function(argument), called in a child that later also runs items.

        The function's warnings are shown.

        Raises:
            UserError: The function raised it, or MAX_DEATHS children died while calling it.
            RuntimeError: The function raised a different error; the message is the traceback.
        """
        call = _Call(_with_warnings, (function, argument), "the beginning of the run")
        self._finish([call])
        return call.result  # type: ignore[no-any-return]  # objects from the pipe have no types

    def _finish(self, calls: Sequence[_Call]) -> None:
        waiting = deque(calls)
        busy: dict[_Child, _Call] = {}
        while waiting or busy:
            self._hand_out(waiting, busy)
            ready = set(wait([child.pipe for child in busy]))
            for child in [child for child in busy if child.pipe in ready]:
                call = busy[child]
                try:
                    received = child.pipe.recv()
                except (EOFError, ConnectionResetError):  # the child died
                    del busy[child]
                    self._remove(child)
                    _count_death(call, child.process.exitcode)
                    waiting.append(call)
                    continue
                if isinstance(received, str):
                    call.place = received
                    continue
                del busy[child]
                error_type, call.result = received
                if error_type is not None:
                    raise error_type(call.result)

    def _hand_out(self, waiting: deque[_Call], busy: dict[_Child, _Call]) -> None:
        """Give waiting calls to idle children; a call whose child died twice runs alone."""
        while waiting and len(busy) < self.num_workers:
            if busy and (waiting[0].suspect or any(call.suspect for call in busy.values())):
                return
            child = self._idle(busy)
            call = busy[child] = waiting.popleft()
            # If a child dies while idle, the death counts for its next call.
            with suppress(BrokenPipeError):
                child.pipe.send((call.function, call.arguments, call.deaths))

    def _idle(self, busy: Collection[_Child]) -> _Child:
        for child in [child for child in self._children if child not in busy]:
            if child.process.is_alive():
                return child
            self._remove(child)  # the child died while idle
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*self.preload])
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        try:
            with _script_left_alone():
                process.start()
        except (OSError, EOFError) as error:  # the process that forks the workers has died
            reason = str(error) or type(error).__name__
            raise UserError(
                f"no worker can be started ({reason}): most likely there is not enough memory, or "
                "a limit on memory or processes is too low (ulimit -v, ulimit -u). Finished work "
                "is kept; the same command tries again"
            ) from error
        theirs.close()
        self._children.append(_Child(process, ours))
        return self._children[-1]

    def _remove(self, child: _Child) -> None:
        """Remove a child that has died."""
        child.process.join()
        self._children.remove(child)
        child.pipe.close()


def _count_death(call: _Call, exitcode: int | None) -> None:
    call.deaths = (*call.deaths, call.place or str(call.item))
    call.place = ""
    if len(call.deaths) >= getattr(call.item, "max_deaths", MAX_DEATHS):
        raise UserError(
            f"a worker died {len(call.deaths)} times at the same item, the last time while nothing "
            f"else ran: {_cause(exitcode)}. The item: {call.deaths[-1]}. Finished work is "
            "kept; the same command tries again"
        )


@contextmanager
def _script_left_alone() -> Iterator[None]:
    """Keep children that start during the block from importing the script of this process.

    The import would run all unguarded code of the script, including the build that starts the
    children. multiprocessing imports the script because functions may be defined in it, unless the
    module's name is `….__main__`, as in packages.
    """
    script = sys.modules["__main__"]
    spec = getattr(script, "__spec__", None)
    script.__spec__ = ModuleSpec("corpusmill.__main__", None)
    try:
        yield
    finally:
        script.__spec__ = spec


def _with_warnings(function: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
    """Call a function while the log of this process shows the warnings of this package."""
    own = logging.getLogger("pipelines")
    own.setLevel(logging.WARNING)
    try:
        return function(argument)
    finally:
        own.setLevel(logging.NOTSET)


def _cause(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "it was killed, most likely for lack of memory"
    if code is not None and code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it exited with code {code}"


def _serve(pipe: "Connection[Any, Any]") -> None:
    """Run calls until the driver ends, and send back their results or errors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles Ctrl-C
    block_pandas_import()
    log_errors()  # the driver has shown the warnings of libraries
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, arguments, deaths = pipe.recv()
        except EOFError:
            return
        except Exception as error:
            if is_out_of_memory(error):
                os.kill(os.getpid(), signal.SIGKILL)
            raise
        ATTEMPT.begin(deaths, pipe.send)
        outcome: tuple[type[Exception] | None, Any]
        try:
            outcome = None, function(*arguments)
        except UserError as error:
            outcome = DamageError if isinstance(error, DamageError) else UserError, str(error)
        except Exception as error:  # noqa: BLE001 - the driver raises it, whatever it is
            outcome = RuntimeError, traceback.format_exc()
            if is_out_of_memory(error):
                outcome = MemoryError, str(error)
        pipe.send(outcome)


def _end_with_parent() -> None:
    """End this process when the driver ends, so that a killed run leaves no workers behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
