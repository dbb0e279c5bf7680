"""Kernels: functions on numpy arrays and numbers, which numba compiles once on each machine.

Importing a module with kernels costs nothing: numba is imported, which takes half a second, when
the first kernel is called, and a kernel is compiled or loaded when it is called itself. Where
NUMBA_DISABLE_JIT=1 kernels are the Python functions that they are written as, and very slow.

Compiled code is kept in `__pycache__` of this package, or in the user's cache folder where that
cannot be written, by the sources of all kernels: a kernel is part of those that call it, and numba
itself would only notice a change of the calling module. From other modules a kernel uses only
kernels and constants of its own module. Code compiled for one processor serves no other one:
numba keeps the code of both.
"""

import hashlib
import importlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import numpy as np

from shards.errors import UserError

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Return a function as native code, compiled for the types of the arguments it is called with.

    It makes no arrays, but uses those that it is given: what makes arrays takes twice as long to
    compile, and counts references to all of them. No lock of the interpreter is held while it runs.
    Indices are not checked, numbers overflow silently, and division by zero gives infinity or NaN.
    """
    return cast(_Function, Kernel(function))


def kernel_inlined(function: _Function) -> _Function:
    """Return a kernel that becomes part of those that call it.

    So they may hand it tuples of many arrays for every word: a call would take longer than the
    word.
    """
    return cast(_Function, Kernel(function, inlined=True))


class Kernel:
    """A function that numba compiles when it is first called."""

    def __init__(self, function: Callable[..., Any], *, inlined: bool = False) -> None:
        update_wrapper(self, function)
        self._function = function
        self._inlined = inlined

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """The compiled function; the function itself without numba's compiler."""
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return np.errstate(all="ignore")(self._function)
        try:
            numba = importlib.import_module("pipelines.kernel_cache")
        except Exception as error:  # made for another numpy, it fails in many ways
            raise UserError(
                f"numba cannot be imported ({type(error).__name__}: {error}): pip install "
                "'corpusmill[pipelines]'."
            ) from error
        return numba.compile_lazily(self._function, folder(), inlined=self._inlined)


def is_warm() -> bool:
    """Return whether this machine has compiled kernels before, from these sources."""
    found = folder()
    return found is not None and any(found.glob("*.nbi"))


@cache
def folder() -> Path | None:
    """Return the folder for compiled code; None if there is none that can be written."""
    paths = sorted(Path(__file__).parent.rglob("*.py"))
    sources = [source for path in paths if b"@kernel" in (source := path.read_bytes())]
    name = f"compiled-{hashlib.sha256(b''.join(sources)).hexdigest()[:16]}"
    own = Path(__file__).parent / "__pycache__" / name
    if _is_writable(own):
        return own
    user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "corpusmill" / name
    if own.is_dir() and not user.exists():  # an image, used by somebody else than who made it
        _copy(own, user)
    return user if _is_writable(user) else None


def _is_writable(folder: Path) -> bool:
    """Return whether a folder can be written, after making it if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home
        return False
    return os.access(folder, os.W_OK)


def _copy(folder: Path, to: Path) -> None:
    """Copy a folder whole or not at all; another process may do the same."""
    with suppress(OSError, RuntimeError):
        to.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=to.parent) as temporary:
            copy = shutil.copytree(folder, Path(temporary) / to.name)
            copy.rename(to)
