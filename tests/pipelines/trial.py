"""Makes calls in a child process, because a damaged file may end the process that loads it."""

import faulthandler
import os
import pickle
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from shards.errors import UserError

_MAX_BYTES = 4 << 30
"""The number of bytes of address space that the child may use beyond that of this process."""

_MAX_SECONDS = 1200


def error_in_child(call: Callable[[], object]) -> str:
    """Return, in one paragraph, the error of a call in a child process; "" if the call succeeds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _call(call, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        sent = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return str(pickle.loads(sent)) if sent else f"cannot be loaded: exit code {code}"


def _call(call: Callable[[], object], writing: int) -> None:
    """Call the function, write any error to the pipe, and end the process."""
    error_text = ""
    try:
        _keep_small_and_silent()
        try:
            call()
        except UserError as error:
            error_text = str(error)
        except BaseException as error:  # noqa: BLE001  a panic in Rust is no Exception
            error_text = f"cannot be loaded: {type(error).__name__}: {error}"
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(error_text, pipe)
    finally:
        os._exit(0)  # so that this fork flushes and cleans up nothing of its parent's


def _keep_small_and_silent() -> None:
    """Limit the memory and time of this process, and discard the output of libraries."""
    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    signal.alarm(_MAX_SECONDS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = min([taken + _MAX_BYTES, *(limit for limit in (soft, hard) if limit >= 0)])
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (least, hard))
