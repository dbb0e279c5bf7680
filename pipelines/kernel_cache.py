"""How numba compiles kernels, and where it keeps them: see compiled.py.

One process of a machine compiles at a time. The others wait for it and load what it has compiled;
a process that finds all that it needs waits for nobody.
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
"""Options of numba; the last one: no references to arrays are counted."""


def compile_lazily(function: Callable[..., Any], folder: Path | None, *, inlined: bool) -> Any:
    """Return a function that numba compiles when it is called with types that it has not met.

    Args:
        function: The function.
        folder: Where compiled code is kept; None: nowhere.
        inlined: Whether it becomes part of the kernels that call it.
    """
    compiled: Any = numba.njit(**_OPTIONS, forceinline=inlined)(function)
    if folder is not None:
        _keep(compiled, folder)
    _compile_less(compiled)
    return compiled


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, _: object) -> Any:
    """Let kernels call kernels."""
    return kernel.compiled._numba_type_


class _Turn:
    """The turn of this process to compile: a kernel takes it for all that it calls."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._depth = 0
        self._taken = False

    @contextmanager
    def end(self) -> Iterator[None]:
        """End the turn after the block, if one has begun in it."""
        with global_compiler_lock:  # so that one thread compiles
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    self._taken = False
                    self._held.close()

    def take(self, folder: Path) -> bool:
        """Wait for the process that compiles; return whether there was one to wait for."""
        if self._taken:
            return False
        self._taken = True
        fcntl.flock(self._held.enter_context((folder / "lock").open("wb")), fcntl.LOCK_EX)
        return True


_turn = _Turn()


def _keep(compiled: Any, folder: Path) -> None:
    """Keep what is compiled of a function, and let no other process compile meanwhile."""
    compiled._cache = _Cache(compiled.py_func, folder)
    compile_for = compiled.compile

    def compile_in_turn(types: Any) -> Any:
        with _turn.end():
            return compile_for(types)

    compiled.compile = compile_in_turn


class _Cache(caching.FunctionCache):
    """The versions of a function in a folder that is named after the sources."""

    def __init__(self, function: Any, folder: Path) -> None:
        # Not numba's own, which looks for a folder and takes the time of a file for its version.
        self._py_func, self._name = function, repr(function)
        self._impl, self._cache_path = _Serializer(), folder
        python = "".join(map(str, sys.version_info[:2]))
        name = f"{function.__module__}.{function.__qualname__}.py{python}"
        self._cache_file = caching.IndexDataCacheFile(str(folder), name, source_stamp="")
        self._enabled = True

    def load_overload(self, types: Any, context: Any) -> Any:
        """Return a version, if need be of a process that is compiling now; or None."""
        load: Any = super().load_overload
        found = load(types, context)
        if found is None and _turn.take(self._cache_path):
            found = load(types, context)
        return found


class _Serializer(caching.CompileResultCacheImpl):
    """Turns compiled code into bytes; the folder is there."""

    def __init__(self) -> None:
        self._locator = SimpleNamespace(ensure_cache_path=lambda: None)


def _compile_less(compiled: Any) -> None:
    """Let kernels that call a kernel share its version for numbers, without a door for Python.

    numba would compile one more for each constant that is passed, which is a third of all it does
    here, and then use the one for numbers.
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
