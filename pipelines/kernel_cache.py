"""Makes numba compile and cache kernels in the way that compiled.py describes.

On each machine one process compiles at a time. The others wait for it and load the compiled code; a
process that finds all the code it needs does not wait.
"""

import fcntl
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
from numba.core import caching
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import typeof_impl

from pipelines.compiled import Kernel

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
"""Options of numba; the last one turns off reference counting for arrays."""


def compile_lazily(function: Callable[..., Any], folder: Path | None, *, inlined: bool) -> Any:
    """Return a function that numba compiles when it is called with new types.

    Args:
        function: The function.
        folder: The folder for compiled code; None to keep no code.
        inlined: Whether the function becomes part of the kernels that call it.
    """
    compiled: Any = numba.njit(**_OPTIONS, forceinline=inlined)(function)
    if folder is not None:
        _keep(compiled, folder)
    _compile_less(compiled)
    return compiled


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, _: object) -> Any:
    """Return numba's type of a kernel, so that kernels can call kernels."""
    return kernel.compiled._numba_type_


class _Turn:
    """This process's turn to compile; a kernel's turn covers all kernels that it calls."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._depth = 0
        self._taken = False

    @contextmanager
    def end(self) -> Iterator[None]:
        """End the turn after the block, if the turn began in the block."""
        with global_compiler_lock:  # so that only one thread compiles
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    self._taken = False
                    self._held.close()

    def take(self, folder: Path) -> bool:
        """Wait for this process's turn; return False if the process had the turn already."""
        if self._taken:
            return False
        self._taken = True
        fcntl.flock(self._held.enter_context((folder / "lock").open("wb")), fcntl.LOCK_EX)
        return True


_turn = _Turn()


def _keep(compiled: Any, folder: Path) -> None:
    """Cache the compiled versions of a function, and compile only in this process's turn."""
    compiled._cache = _Cache(compiled.py_func, folder)
    compile_for = compiled.compile

    def compile_in_turn(types: Any) -> Any:
        with _turn.end():
            return compile_for(types)

    compiled.compile = compile_in_turn


class _Cache(caching.FunctionCache):
    """The cache of a function's compiled versions, in a folder that is named after the sources."""

    def __init__(self, function: Any, folder: Path) -> None:
        # Do not call numba's own __init__, which looks for a folder and uses a file's time as
        # version.
        self._py_func, self._name = function, repr(function)
        self._impl, self._cache_path = _Serializer(), folder
        python = "".join(map(str, sys.version_info[:2]))
        name = f"{function.__module__}.{function.__qualname__}.py{python}"
        self._cache_file = caching.IndexDataCacheFile(str(folder), name, source_stamp="")
        self._enabled = True

    def load_overload(self, types: Any, context: Any) -> Any:
        """Return a compiled version or None, after waiting if another process is compiling it."""
        load: Any = super().load_overload
        found = load(types, context)
        if found is None and _turn.take(self._cache_path):
            found = load(types, context)
        return found


class _Serializer(caching.CompileResultCacheImpl):
    """Turns compiled code into bytes, without creating the folder, which already exists."""

    def __init__(self) -> None:
        self._locator = SimpleNamespace(ensure_cache_path=lambda: None)


def _compile_less(compiled: Any) -> None:
    """Let kernels share a callee's version for numbers, without a wrapper for Python callers.

    For each constant that is passed, numba would compile an additional version, which is a third of
    all its work here, and would then use the version for numbers.
    """
    kinds: Any = importlib.import_module("numba.core.types")

    def plain(kind: Any) -> Any:
        if isinstance(kind, kinds.Tuple):
            return kinds.Tuple([*map(plain, kind.types)])
        return kinds.unliteral(kind)

    resolve = compiled.get_call_template

    def template(types: Any, named: Any) -> Any:
        compiled.targetoptions["no_cpython_wrapper"] = True
        try:
            plain_named = {name: plain(kind) for name, kind in named.items()}
            return resolve(tuple(map(plain, types)), plain_named)
        finally:
            compiled.targetoptions.pop("no_cpython_wrapper", None)

    compiled.get_call_template = template
