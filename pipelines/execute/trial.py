"""A first try in a child process: files that others made may end the process that loads them.

Libraries in C++ and Rust read models. A damaged or crafted file can make them abort, read memory
that is not theirs, ask for all memory there is, never end, or print pages. A child is forked for
it, which takes some milliseconds; whatever becomes of it, this process can tell the user.
"""

import faulthandler
import os
import pickle
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pipelines.execute.failure import one_line
from shards.errors import UserError

MOST_BYTES = 4 << 30
"""Address space that the child may take beyond that of this process."""

MOST_SECONDS = 1200
"""By the clock, on a busy machine: the largest vocabularies take a few."""

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
        sent = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    refusal, reason = pickle.loads(sent) if sent else ("", _end(code))
    if refusal:
        raise UserError(refusal)
    if reason:
        raise UserError(
            f"{name} cannot be loaded: {reason}. Most likely the file is damaged, or was never "
            "meant for that library: fetch or make it again"
        )


def _end(code: int) -> str:
    """Return why nothing came from a child that ended with an exit code."""
    if code == -signal.SIGALRM:
        return f"its library is not done after {MOST_SECONDS} s"
    cause = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"a process that tries to does not survive ({cause})"


def _call(load: Callable[[], object], writing: int) -> None:
    """Call the function, send through the pipe what it refuses and why it fails, and end."""
    refusal = reason = ""
    try:
        _keep_small_and_silent()
        try:
            load()
        except UserError as error:
            refusal = str(error)
        except MemoryError:
            reason = "there is not enough memory for what it asks for (a limit, ulimit -v?)"
        except BaseException as error:  # noqa: BLE001  a panic in Rust is no Exception
            text = f"{type(error).__name__}: {one_line(error, _REASON_CHARACTERS)}"
            reason = f"its library fails on it ({text})"
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump((refusal, reason), pipe)
    finally:
        os._exit(0)  # nothing of the parent's is flushed or cleaned up by this copy of it


def _keep_small_and_silent() -> None:
    """Limit memory and time of this process, and send what libraries print nowhere."""
    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    signal.alarm(MOST_SECONDS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = min([taken + MOST_BYTES, *(limit for limit in (soft, hard) if limit >= 0)])
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (least, hard))
