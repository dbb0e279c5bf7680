"""What children do in the tests of workers; a module of its own, so that they can import it.

A task is (name, duty). Every start and end is a line of the log in the folder that the payload
names: lines are appended whole, so their order is the order of events.
"""

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pipelines.engine.workers import Workers
from shards.errors import DamageError, UserError

Task = tuple[str, str]


class Awkward(UserError):
    """Pickles, but cannot be made again from what was pickled."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__(f"{path} has {size} bytes")


class Closed(UserError):
    """Cannot be pickled at all."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.cause = lambda: text


def tell(folder: Path, event: str, name: str) -> None:
    descriptor = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{event} {name} {os.getpid()}\n".encode())
    os.close(descriptor)


def told(folder: Path) -> list[tuple[str, str, int]]:
    """The events so far: what, of which task, in which process."""
    path = folder / "log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(event, name, int(pid)) for event, name, pid in map(str.split, lines)]


def starts(folder: Path, name: str) -> int:
    return sum(event == "start" and at == name for event, at, _ in told(folder))


def wait_for(done: Callable[[], bool], *, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError("what this waits for does not come")
        time.sleep(0.01)


def work(payload: bytes, task: Task) -> None:
    """Do a duty: nothing, raise, die by a signal the first so many times, or wait."""
    folder = Path(os.fsdecode(payload))
    name, duty = task
    tell(folder, "start", name)
    kind, _, argument = duty.partition(":")
    _DUTIES[kind](folder, name, argument)
    tell(folder, "end", name)


def _raise(folder: Path, name: str, argument: str) -> None:
    errors = {
        "user": UserError(f"mend {name}: 请改"),
        "damage": DamageError(f"{folder} is damaged"),
        "other": ValueError(f"{name} is broken"),
        "awkward": Awkward("a.bin", 7),
        "closed": Closed("this error holds a function"),
        "memory": MemoryError("no more"),
    }
    raise errors[argument]


def _die(folder: Path, name: str, argument: str) -> None:
    how, times = argument.split("*")
    if starts(folder, name) > int(times):
        return
    if how.startswith("exit"):
        os._exit(int(how[4:]))
    os.kill(os.getpid(), signal.Signals[how])
    time.sleep(20)


def _ends(folder: Path, name: str, argument: str) -> None:
    """Wait until so many tasks have ended."""
    del name
    wait_for(lambda: sum(event == "end" for event, _, _ in told(folder)) >= int(argument))


def _starts(folder: Path, name: str, argument: str) -> None:
    """Wait until so many tasks have started."""
    del name
    wait_for(lambda: sum(event == "start" for event, _, _ in told(folder)) >= int(argument))


def _sleep(folder: Path, name: str, argument: str) -> None:
    del folder, name
    time.sleep(float(argument))


def _nothing(folder: Path, name: str, argument: str) -> None:
    del folder, name, argument


_DUTIES = {
    "nothing": _nothing,
    "raise": _raise,
    "die": _die,
    "ends": _ends,
    "starts": _starts,
    "sleep": _sleep,
}


def prepare(folder: Path) -> Callable[[Task], None]:
    """What a runner is given: makes the function that does tasks."""
    tell(folder, "prepare", "-")
    return lambda task: work(os.fsencode(folder), task)


def pickled(folder: Path) -> bytes:
    return pickle.dumps((prepare, folder))


def drive(folder: str) -> None:
    """A driver of its own process: two children that sleep for longer than any test."""
    with Workers(2, work) as workers:
        workers.run_all([("a", "sleep:600"), ("b", "sleep:600"), ("c", "nothing")], folder.encode())


if __name__ == "__main__":
    drive(sys.argv[1])
