"""Kernels: functions on numpy arrays and numbers, which numba compiles once on each machine.

Importing a module with kernels costs nothing: the first call of any kernel imports numba, which
takes half a second, and the first call of each kernel compiles or loads it. With
NUMBA_DISABLE_JIT=1 kernels run as plain Python functions, which is very slow.

Compiled code is cached in `__pycache__` of this package, or in the user's cache folder if
`__pycache__` is not writable. The cache key covers the sources of all kernels, because a kernel is
compiled into its callers and numba itself only notices changes of the calling module. A kernel may
call kernels of other modules, but uses only constants of its own module. Code compiled for one type
of processor does not run on another; numba keeps both versions.
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

    A kernel does not create arrays but uses those that it receives, because code that creates
    arrays takes twice as long to compile, and counts references to all arrays. A kernel runs
    without the interpreter's lock (GIL). Indices are not checked, numbers overflow silently, and
    division by zero gives infinity or NaN.
    """
    return cast(_Function, Kernel(function))


def kernel_inlined(function: _Function) -> _Function:
    """Return a kernel that is inlined into its callers.

    Callers can then pass tuples of many arrays for every word; a real call with such arguments
    would take longer than processing the word.
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
        """The compiled function; the original function if numba's compiler is disabled."""
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return np.errstate(all="ignore")(self._function)
        try:
            numba = importlib.import_module("pipelines.kernel_cache")
        except Exception as error:  # a numba built for a different numpy fails in many ways
            raise UserError(
                f"numba cannot be imported ({type(error).__name__}: {error}): pip install "
                "'corpusmill[pipelines]'."
            ) from error
        return numba.compile_lazily(self._function, cache_folder(), inlined=self._inlined)


def has_compiled_kernels() -> bool:
    """Return whether this machine has already compiled kernels from these sources."""
    found = cache_folder()
    return found is not None and any(found.glob("*.nbi"))


@cache
def cache_folder() -> Path | None:
    """Return the folder for compiled code; None if no such folder is writable."""
    paths = sorted(Path(__file__).parent.rglob("*.py"))
    sources = [source for path in paths if b"@kernel" in (source := path.read_bytes())]
    name = f"compiled-{hashlib.sha256(b''.join(sources)).hexdigest()[:16]}"
    own = Path(__file__).parent / "__pycache__" / name
    if _is_writable(own):
        return own
    user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "corpusmill" / name
    if own.is_dir() and not user.exists():  # a container image that another user built
        _copy(own, user)
    return user if _is_writable(user) else None


def _is_writable(folder: Path) -> bool:
    """Return whether a folder is writable, after creating it if necessary."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # there is no home folder
        return False
    return os.access(folder, os.W_OK)


def _copy(folder: Path, to: Path) -> None:
    """Copy a folder completely or not at all; another process may copy it at the same time."""
    with suppress(OSError, RuntimeError):
        to.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=to.parent) as temporary:
            copy = shutil.copytree(folder, Path(temporary) / to.name)
            copy.rename(to)
