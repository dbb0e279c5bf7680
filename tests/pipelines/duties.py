"""Items for the tests of workers and engines, in a module that child processes can import.

An item is (name, duty). Every start and end of an item is a line of the log in the folder that the
payload names. Lines are appended whole, so their order is the order of the events.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from pipelines.execute.workers import Workers
from shards.errors import DamageError, UserError

Item = tuple[str, str]


class Closed(UserError):
    """An error that cannot be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.cause = lambda: text


def log_event(folder: Path, event: str, name: str) -> None:
    descriptor = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{event} {name} {os.getpid()}\n".encode())
    os.close(descriptor)


def read_events(folder: Path) -> list[tuple[str, str, int]]:
    """Return the events so far: the kind of event, the item and the process ID."""
    path = folder / "log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(event, name, int(pid)) for event, name, pid in map(str.split, lines)]


def starts(folder: Path, name: str) -> int:
    return sum(event == "start" and item == name for event, item, _ in read_events(folder))


def wait_for(done: Callable[[], bool], *, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"this did not happen in {seconds} s")
        time.sleep(0.01)


def work(payload: bytes, item: Item) -> None:
    """Do the duty of an item, and log the item's start and end."""
    folder = Path(os.fsdecode(payload))
    name, duty = item
    log_event(folder, "start", name)
    kind, _, argument = duty.partition(":")
    _DUTIES[kind](folder, name, argument)
    log_event(folder, "end", name)


def _raise(folder: Path, name: str, argument: str) -> None:
    errors = {
        "user": UserError(f"mend {name}: 请改"),
        "damage": DamageError(f"{folder} is damaged"),
        "other": ValueError(f"{name} is broken"),
        "closed": Closed("this error holds a function"),
        "memory": MemoryError("no more"),
    }
    raise errors[argument]


def _die(folder: Path, name: str, argument: str) -> None:
    """Die from a signal or with an exit code, on the first TIMES starts; argument: HOW*TIMES."""
    how, times = argument.split("*")
    if starts(folder, name) > int(times):
        return
    if how.startswith("exit"):
        os._exit(int(how[4:]))
    os.kill(os.getpid(), signal.Signals[how])
    time.sleep(20)


def _starts(folder: Path, name: str, argument: str) -> None:
    """Wait until the number of items in the argument has started."""
    del name
    wait_for(lambda: sum(event == "start" for event, _, _ in read_events(folder)) >= int(argument))


def _sleep(folder: Path, name: str, argument: str) -> None:
    del folder, name
    time.sleep(float(argument))


def _nothing(folder: Path, name: str, argument: str) -> None:
    del folder, name, argument


_DUTIES = {
    "nothing": _nothing,
    "raise": _raise,
    "die": _die,
    "starts": _starts,
    "sleep": _sleep,
}


def prepare(folder: Path) -> Callable[[Item], None]:
    """Return the function that runs items; a runner calls this function in each worker."""
    log_event(folder, "prepare", "-")
    return lambda item: work(os.fsencode(folder), item)


def answer(folder: Path) -> tuple[str, int]:
    """Log warnings, and return the folder's name and the process ID, as a worker's result."""
    logging.getLogger("pipelines.somewhere").warning("%s is odd", folder.name)
    logging.getLogger("elsewhere").warning("not of this package")
    return folder.name, os.getpid()


def imported(folder: Path) -> list[str]:
    """Make an array, as workers do, and return the modules that the process has then imported."""
    pa.array([folder.name])
    return [*sys.modules]


def drive(folder: str) -> None:
    """Drive two children whose items sleep for longer than any test takes."""
    with Workers(2, work) as workers:
        workers.run_all([("a", "sleep:600"), ("b", "sleep:600"), ("c", "nothing")], folder.encode())


if __name__ == "__main__":
    # A shell makes background jobs ignore Ctrl-C, which children inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The children find the function by the name of its module.
    from tests.pipelines import duties

    duties.drive(sys.argv[1])
