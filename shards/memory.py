"""Whether there is memory to start a command, and which errors are for lack of it.

numpy, pyarrow and torch are imported by the first lines of nearly every module. Where a limit
(`ulimit -v`) leaves them no memory they fail in ways that no `except` sees: pages of warnings,
threads that do not start, an exit in the middle of an import. So where there is a limit, a child
process imports all of a command first.
"""

import errno
import importlib
import importlib.util
import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from shards.program import started_module

_NARROW_BYTES = 8 << 30
"""Under a lower limit room is saved, which may cost time."""

_ARENA_MAX = -8
"""M_ARENA_MAX of glibc's malloc.h."""

_MOST_SECONDS = 300
"""After these the imports hang."""

_REFUSED = 2
"""As in `shards.command`, which has more to import."""


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether an error was raised because memory was refused."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    kinds = (OSError, ImportError, RuntimeError)
    return isinstance(error, kinds) and any(words in str(error) for words in _NO_MEMORY)


_NO_MEMORY = ("Cannot allocate memory", "failed to map segment", "can't start new thread")


@dataclass(frozen=True)
class _Need:
    """What the commands of a package need."""

    spare_mb: int
    """What has to be left when all is imported."""
    later: tuple[str, ...] = ()
    """What they import besides their own modules, once they know what to do."""


_NEEDS = {
    "shards": _Need(64),
    "pipelines": _Need(256, ("pipelines.run.build",)),
    "trainer": _Need(256),
}


def check_room() -> None:
    """End this process with a paragraph if it is to run a command that has no room to start.

    It is called before anything is imported, with no effect but while `python -m` looks for one of
    our commands, under a limit.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    command = started_module() if sys.argv[:1] == ["-m"] else ""
    package = command.partition(".")[0]
    need = _NEEDS.get(package)
    if limit == resource.RLIM_INFINITY or need is None:
        return
    if limit < _NARROW_BYTES:
        _save_room()
    own = f"{command}.__main__" if command == package else command
    if not _fits([own, *need.later], limit, spare=need.spare_mb << 20):
        from shards.shown import tell  # noqa: PLC0415  see the docstring

        tell(
            f"{command}: there is no room to start: a limit of {limit >> 20:,} MB on the memory of "
            f"a process (ulimit -v) does not hold its libraries and {need.spare_mb} MB to work "
            "with. Raise the limit, or lift it: ulimit -v unlimited."
        )
        sys.exit(_REFUSED)


def _save_room() -> None:
    """Let threads take less: one that cannot start ends the process, or is told at length."""
    import ctypes  # noqa: PLC0415  of use here only

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tens of MB each
    # For memory that a thread manages itself the C library sets 128 MB aside; children read this.
    os.environ.setdefault("MALLOC_ARENA_MAX", "1")
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _fits(modules: Sequence[str], limit: int, *, spare: int) -> bool:
    """Return whether a child of this process can import modules and has `spare` bytes left."""
    if limit <= spare:
        return False
    try:
        child = os.fork()
    except OSError:
        return False
    if not child:
        _import(modules, limit, spare=spare)
    _, status = os.waitpid(child, 0)
    return status == 0


def _import(modules: Sequence[str], limit: int, *, spare: int) -> None:
    """Import modules in silence, and end this child: with 0 unless they need more memory."""
    code = 1
    try:
        signal.alarm(_MOST_SECONDS)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (limit - spare, hard))
        try:
            for module in modules:
                importlib.import_module(module)
            code = 0
        except Exception as error:  # noqa: BLE001  what else is wrong is told by who imports it next
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
            code = int(_is_scarce(error))
    finally:
        os._exit(code)


def _is_scarce(error: Exception) -> bool:
    """Return whether an import may have failed for lack of memory."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        # Without memory Python overlooks files.
        sys.path_importer_cache.clear()
        return importlib.util.find_spec(error.name) is not None
    return isinstance(error, ImportError | OSError | RuntimeError | SystemError | MemoryError)
