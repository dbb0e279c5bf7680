"""Native loops made of Python functions by numba, compiled once on each machine.

A kernel is a function on numpy arrays and numbers. Modules with kernels import numba, which takes
a second, and their first call compiles them, which takes several; both are only worth it where
there is much to do. So such modules are imported where compiled code was asked for, and every
kernel has a plain counterpart, which is the definition and takes its place everywhere else.

Compiled code is kept in `__pycache__` of this package, or in the user's cache folder where that
cannot be written, by the sources of all kernels: a kernel is part of those that call it, and numba
itself would only notice a change of the calling module, or of the processor. From other modules a
kernel uses nothing but kernels. Where NUMBA_DISABLE_JIT=1 nothing is compiled, and the plain
functions do all the work.
"""

import fcntl
import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


@cache
def available() -> bool:
    """Return whether kernels can be compiled here."""
    disabled = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return not disabled and importlib.util.find_spec("numba") is not None


def kernel(function: _Function) -> _Function:
    """Return a function as native code, compiled for the types of the arguments it is called with.

    It holds no lock of the interpreter while it runs. Indices are not checked, and division by
    zero gives infinity or NaN.
    """
    return _compile(function, {})


def kernel_in_place(function: _Function) -> _Function:
    """Return a kernel that makes no arrays, but only uses those that it is given.

    So it need not count references to them. Where short kernels call each other for every word,
    counting takes ten times as long as their own work. What makes arrays does not compile.
    """
    return _compile(function, {"_nrt": False})


def _compile(function: _Function, options: dict[str, Any]) -> _Function:
    import numba  # noqa: PLC0415  takes a second, and may be missing

    folder = _folder()
    numba.config.CACHE_DIR = str(folder or "")  # type: ignore[attr-defined] # set at run time
    make: Any = numba.njit(cache=folder is not None, nogil=True, error_model="numpy", **options)
    compiled: _Function = make(function)
    return compiled


@contextmanager
def compiling() -> Iterator[None]:
    """Let one process of this machine compile at a time; the next ones find its results."""
    folder = _folder()
    if folder is None:
        yield
        return
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def _folder() -> Path | None:
    """Return the folder for compiled code; None if there is none that can be written."""
    package = Path(__file__).parent
    sources = (path.read_bytes() for path in sorted(package.rglob("*.py")))
    digest = hashlib.sha256(b"".join(source for source in sources if b"@kernel" in source))
    user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "corpusmill"
    for parent in (package / "__pycache__", user):
        folder = parent / f"compiled-{digest.hexdigest()[:16]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):  # no home
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None
