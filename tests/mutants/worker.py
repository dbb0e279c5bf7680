"""Runs processes that put faults into their own copies of the repository, and run tests there."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.mutants.choice import Choice
from tests.mutants.copies import copy_repository
from tests.mutants.faults import Fault
from tests.mutants.trial import run_trial, warm_up


def key(fault: Fault) -> str:
    """Return the key of a fault in the results."""
    return fault.draw[:16]


def run_faults(
    folder: Path, choice: Choice, faults: Sequence[Fault], processes: int
) -> Iterator[dict[str, Any]]:
    """Yield the result of each fault in the order of completion."""
    if not faults:
        return
    context = multiprocessing.get_context("spawn")
    slots = context.SimpleQueue()
    for number in range(processes):
        slots.applied(number)
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=Worker.start, initargs=(slots, folder, choice)
    ) as pool:
        for future in as_completed([pool.submit(Worker.run, fault) for fault in faults]):
            yield future.result()


class Worker:
    """The state of a process of the pool: a copy of the repository, and the choice of tests."""

    copy: Path
    choice: Choice
    reliable: set[str]

    @classmethod
    def start(cls, slots: Any, folder: Path, choice: Choice) -> None:
        warm_up()
        cls.copy = copy_repository(folder / f"copy-{slots.get()}")
        cls.choice = choice
        cls.reliable = set()

    @classmethod
    def run(cls, fault: Fault) -> dict[str, Any]:
        """Apply a fault, run the tests chosen for it, and return the result."""
        seconds = 0.0
        while True:
            tests = cls.choice.tests(fault)
            with applied(cls.copy / fault.path, fault):
                verdict = run_trial(cls.copy, cls._timed(tests)) if tests else None
            seconds += verdict.seconds if verdict else 0
            caught = verdict.caught_by if verdict else ""
            if cls._fails_by_itself(caught, tests):
                cls.choice.unreliable.add(caught)
                continue
            return {
                "key": key(fault),
                "fault": str(fault),
                "caught_by": caught,
                "ran": verdict.ran if verdict else 0,
                "chosen": len(tests),
                "seconds": round(seconds, 1),
            }

    @classmethod
    def _timed(cls, tests: Sequence[str]) -> list[tuple[str, float]]:
        return [(test, cls.choice.seconds(test)) for test in tests]

    @classmethod
    def _fails_by_itself(cls, test: str, tests: Sequence[str]) -> bool:
        """Return whether a test also fails if no fault is applied.

        Raises:
            RuntimeError: The tests cannot be run.
        """
        if not test or test in cls.reliable:
            return False
        known = test in cls.choice.reach.tests
        alone = run_trial(cls.copy, cls._timed([test] if known else tests)).caught_by
        if alone and not known:
            raise RuntimeError(f"{alone} fails without a fault: {cls.copy}-scratch/output.txt")
        if known and not alone:
            cls.reliable.add(test)
        return bool(alone)


@contextmanager
def applied(path: Path, fault: Fault) -> Iterator[None]:
    """Put a fault into a file of a copy, and restore the file at the end of the block."""
    whole = path.read_bytes()
    _write(path, fault.applied(whole))
    try:
        yield
    finally:
        _write(path, whole)


def _write(path: Path, content: bytes) -> None:
    """Write a module, and delete the module's compiled files."""
    path.write_bytes(content)
    for old in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        old.unlink()
