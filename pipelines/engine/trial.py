"""A first try in a child process: files that others made may end the process that loads them.

Libraries in C++ and Rust read models. A damaged or crafted file can make them abort, read memory
that is not theirs, ask for all memory there is, never end, or print pages. A child is forked for
it, which takes some milliseconds; whatever becomes of it, this process can tell the user.
"""

import faulthandler
import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pipelines.engine.failure import one_line
from shards.errors import UserError

MOST_BYTES = 4 << 30
"""Address space that the child may take beyond that of this process."""

MOST_SECONDS = 300
"""CPU time that the child may take: the largest vocabularies take a few."""

_MOST_WAITING = 4 * MOST_SECONDS
"""Seconds by the clock, on a busy machine."""

_DONE, _REFUSED, _NO_MEMORY, _FAILED = b"d", b"r", b"m", b"f"
_READ_BYTES = 1 << 16
_REASON_CHARACTERS = 300


def try_in_child(load: Callable[[], object], name: str) -> None:
    """Call a function in a child of this process, which the call may end.

    Args:
        load: Loads something, without threads of its own.
        name: What it loads, for messages.

    Raises:
        UserError: The function raised it, failed in another way, or ended the child.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _call(load, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read(_READ_BYTES)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    outcome, text = told[:1], told[1:].decode(errors="replace")
    if outcome == _REFUSED:
        raise UserError(text)
    if outcome != _DONE:
        raise UserError(
            f"{name} cannot be loaded: {_reason(outcome, text, code)}. Most likely the file is "
            "damaged, or was never meant for that library: fetch or make it again"
        )


def _reason(outcome: bytes, text: str, code: int) -> str:
    if outcome == _NO_MEMORY:
        return "there is not enough memory for what it asks for (is there a limit, ulimit -v?)"
    if outcome == _FAILED:
        return f"its library fails on it ({text})"
    if code in (-signal.SIGXCPU, -signal.SIGALRM):
        return f"its library is not done after {MOST_SECONDS} s"
    cause = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"a process that tries to does not survive ({cause})"


def _call(load: Callable[[], object], writing: int) -> None:
    """Call the function, tell the outcome through the pipe, and end this child."""
    try:
        _keep_small_and_silent()
        outcome, text = _outcome(load)
        os.write(writing, outcome + text.encode(errors="replace")[: _READ_BYTES - 1])
    finally:
        os._exit(0)  # nothing of the parent's is flushed or cleaned up by this copy of it


def _outcome(load: Callable[[], object]) -> tuple[bytes, str]:
    try:
        load()
    except UserError as error:
        return _REFUSED, str(error)
    except MemoryError:
        return _NO_MEMORY, ""
    except BaseException as error:  # noqa: BLE001  a panic in Rust is no Exception
        return _FAILED, f"{type(error).__name__}: {one_line(error, _REASON_CHARACTERS)}"
    return _DONE, ""


def _keep_small_and_silent() -> None:
    """Limit memory and time of this process, and send what libraries print nowhere."""
    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    signal.alarm(_MOST_WAITING)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + MOST_SECONDS
    wanted = {
        resource.RLIMIT_AS: taken + MOST_BYTES,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in wanted.items():
        soft, hard = resource.getrlimit(kind)
        least = min([value, *(limit for limit in (soft, hard) if limit >= 0)])
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (least, hard))
