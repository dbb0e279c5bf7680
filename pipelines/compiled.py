"""Native loops made of Python functions by numba, compiled once on each machine.

A kernel is a function on numpy arrays and numbers. Modules with kernels import numba, which takes
a second, and their first call compiles them, which takes several; both are only worth it where
there is much to do. So such modules are imported where compiled code was asked for, and every
kernel has a plain counterpart, which is the definition and takes its place everywhere else.

Compiled code is kept in the `__pycache__` beside its module, or below the user's cache folder where
that cannot be written; numba compiles again when the module or the processor changes. Where
NUMBA_DISABLE_JIT=1 nothing is compiled, and the plain functions do all the work.
"""

import fcntl
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
    from numba import njit  # noqa: PLC0415  takes a second, and may be missing

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        compiled: _Function = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep it in
        compiled = njit(**options)(function)
    return compiled


@contextmanager
def compiling() -> Iterator[None]:
    """Let one process of this machine compile at a time; the next ones then find its results."""
    try:
        folder = Path(__file__).parent / "__pycache__"
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:  # an installation that others own: each process compiles by itself
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
