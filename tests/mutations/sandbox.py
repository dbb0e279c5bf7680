"""Runs cases in processes of their own, with bounds on memory and time, and knows which one died.

The first process only imports. It forks one for a run of cases; that one says which case it begins
and what became of it. When it dies, the case is known, and another process goes on after it.
"""

import faulthandler
import json
import os
import resource
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO

from shards.errors import UserError

SECONDS = 60
"""A case takes a tenth of one; more is a loop without end, even on a busy machine."""

MEMORY_BYTES = 2 << 30
"""What a case may take beyond what its process has, mapped files and reserved places left aside;
those that map text load the model of languages, half of that."""

FINE = "fine"
"""The outcome of a case that ended with an exit code that is one."""

_CODES = (0, 1, 2)


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    case: int
    what: str
    """FINE, or how it failed."""
    code: int = 0
    said: str = ""
    """What was printed, or a traceback."""


def run_cases(cases: Sequence[int], run: Callable[[int], int]) -> Iterator[Outcome]:
    """Yield what becomes of each case, in order.

    Args:
        cases: Numbers of cases.
        run: Runs one, and returns its exit code or raises a UserError.
    """
    rest = list(cases)
    while rest:
        for outcome in _forked(rest, run):
            yield outcome
            rest.remove(outcome.case)


def _forked(cases: Sequence[int], run: Callable[[int], int]) -> Iterator[Outcome]:
    """Yield the outcomes of cases that one process runs, until it has run them all or dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):  # what libraries say as they die
            os.dup2(nothing, descriptor)
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            _run_all(cases, run, pipe)
        os._exit(0)
    os.close(writing)
    begun = cases[0]
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            told = json.loads(line)
            if "what" in told:
                yield Outcome(**told)
            begun = told["case"]
    _, status = os.waitpid(child, 0)
    if status:
        how = os.waitstatus_to_exitcode(status)
        name = signal.Signals(-how).name if how < 0 else f"exit {how}"
        yield Outcome(begun, "timeout" if name == "SIGALRM" else name)


def _run_all(cases: Sequence[int], run: Callable[[int], int], pipe: BinaryIO) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.disable()
    for case in cases:
        pipe.write(json.dumps({"case": case}).encode() + b"\n")
        present = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        limit = present * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
        signal.alarm(SECONDS)
        told = _run(case, run)
        signal.alarm(0)
        pipe.write(json.dumps(told).encode() + b"\n")


def _run(case: int, run: Callable[[int], int]) -> dict[str, Any]:
    said = StringIO()
    told: dict[str, Any] = {"case": case, "what": FINE}
    try:
        with redirect_stdout(said), redirect_stderr(said):
            told["code"] = run(case)
    except UserError as error:
        told["code"] = 2
        said.write(str(error))
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is reported
        place = traceback.extract_tb(error.__traceback__)[-1]
        told["what"] = f"{type(error).__name__} in {place.name}"
        said.write(traceback.format_exc())
    text = said.getvalue()
    if told["what"] == FINE and (told["code"] not in _CODES or "Traceback (most" in text):
        told["what"] = f"exit code {told['code']}"
    told["said"] = text[-4000:] if told["what"] != FINE or told["code"] else ""
    return told
