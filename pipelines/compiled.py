"""Native loops made of Python functions by numba, compiled once on each machine.

A kernel is a function on numpy arrays and numbers. Modules with kernels import numba, which takes
a second, and their first call compiles them, which takes several; both are only worth it where
there is much to do. So a process decides once whether it uses kernels (`use_native`), and every
kernel has a plain counterpart, which is the definition and takes its place where they are not used.

Compiled code is kept in `__pycache__` of this package, or in the user's cache folder where that
cannot be written, by the sources of all kernels: a kernel is part of those that call it, and numba
itself would only notice a change of the calling module, or of the processor: on another one it
compiles once more and keeps both. From other modules a kernel uses nothing but kernels. Where
NUMBA_DISABLE_JIT=1 nothing is compiled, and the plain functions do all the work.

Nothing fast is trusted, kernels and libraries alike: `proven` tries it beside the plain one as it
is loaded, and what fails or differs costs a line and time, but never a run. What is compiled
together for one purpose is a part, such as the kernels of a quality profile; a mark beside the
compiled code says that this machine has a part.
"""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import platform
import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Fast = TypeVar("_Fast")
_Plain = TypeVar("_Plain")

_LOG = logging.getLogger(__name__)

_holding = threading.local()
_process = SimpleNamespace(native=False)


def use_native(wanted: bool | None) -> None:
    """Decide which kernels this process uses from what it loads next on.

    Args:
        wanted: True: all; False: none, as in a process that has not decided; None: those that this
            machine has compiled before.
    """
    _process.native = wanted


def _is_wanted(part: str) -> bool:
    return kept([part]) if _process.native is None else bool(_process.native)


@cache
def available() -> bool:
    """Return whether kernels can be compiled here."""
    disabled = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return not disabled and importlib.util.find_spec("numba") is not None


@cache
def usable() -> bool:
    """Return whether numba is there and can be imported, which takes a second.

    If it is there and cannot, a line says so.
    """
    if not available():
        return False
    try:
        importlib.import_module("numba")
    except Exception as error:  # noqa: BLE001  made for another numpy, it fails in many ways
        _warn(f"numba cannot be imported: {_reason(error)}. Nothing is compiled, which is slower.")
        return False
    return True


def proven(
    name: str,
    make: Callable[[], _Fast | None],
    differs: Callable[[_Fast], str | None],
    *,
    plain: _Plain,
    instead: str = "Plain Python",
    part: str = "",
) -> _Fast | _Plain:
    """Return a fast way to do something if it does what the plain one does, else the plain one.

    Where there is a fast one that is not used, a line says why, once in a process.

    Args:
        name: What the line calls the fast one, such as "Compiled code for fingerprints".
        make: Makes it, with the imports it needs; None if there is none. A ValueError is a sentence
            on why it cannot be used.
        differs: Tries it on a few inputs, which also compiles it, and returns a sentence on where
            it differs from the plain one, or None.
        plain: The plain one, or what stands for it.
        instead: What the line calls the plain one.
        part: The part that its kernels are, such as "pieces"; "" if it has none. A process that
            does not use them gets the plain one; of those that do, one at a time compiles.
    """
    if part and not (_is_wanted(part) and usable()):
        return plain
    try:
        with compiling(part) if part else nullcontext():
            fast = make()
            difference = None if fast is None else differs(fast)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  whatever fails here, the plain one can do
        fast, difference = None, _reason(error)
    if difference is not None:
        _warn(f"{name} is not used: {difference}. {instead} takes its place.")
        return plain
    return plain if fast is None else fast


def _reason(error: BaseException) -> str:
    """Return the first line of an error; numba's have dozens."""
    line = str(error).strip().partition("\n")[0].rstrip(".")
    return line if isinstance(error, ValueError) else f"{type(error).__name__}: {line}"


@cache
def _warn(line: str) -> None:
    """Say something once."""
    _LOG.warning("%s", line)


def kernel(function: _Function) -> _Function:
    """Return a function as native code, compiled for the types of the arguments it is called with.

    What kernels call is not called from Python. No lock of the interpreter is held while it runs.
    Indices are not checked, and division by zero gives infinity or NaN.
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
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(cache=folder is not None, **options)(function)
    _compile_less(compiled)
    return cast(_Function, compiled)


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


@contextmanager
def compiling(part: str) -> Iterator[None]:
    """Let one process of this machine compile at a time; the next ones find its results.

    Where this thread already is that one, nothing more is waited for. Once a process has compiled
    the part in such a block, nobody waits for anybody.
    """
    folder = _folder()
    if folder is None or not usable():
        yield
        return
    if getattr(_holding, "lock", False):
        yield
    else:
        with _locked(folder, part):
            yield
    for mark in _marks(folder, [part]):
        mark.touch()


@contextmanager
def _locked(folder: Path, part: str) -> Iterator[None]:
    with (folder / "lock").open("wb") as lock:
        if not kept([part]):
            fcntl.flock(lock, fcntl.LOCK_EX)
            if kept([part]):  # by the process that this one has waited for
                fcntl.flock(lock, fcntl.LOCK_UN)
        _holding.lock = True
        try:
            yield
        finally:
            _holding.lock = False


def kept(parts: Collection[str]) -> bool:
    """Return whether processes of this machine have compiled all these parts.

    Where nothing can be compiled, nothing has been.
    """
    if not available():
        return False
    folder = _folder()
    return folder is not None and all(mark.exists() for mark in _marks(folder, parts))


def _marks(folder: Path, parts: Collection[str]) -> list[Path]:
    """Return the files that say that parts are compiled: by this numba, for this processor."""
    made_for = f"{importlib.metadata.version('numba')} {_processor()}"
    return [
        folder / hashlib.sha256(f"{part} {made_for}".encode()).hexdigest()[:16] for part in parts
    ]


@cache
def _processor() -> str:
    """Return what tells processors apart whose native code differs."""
    try:
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        return platform.machine()
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features")))


def use_whole_seconds() -> None:
    """Give the modules with kernels times of change in whole seconds, once, before any is imported.

    numba takes a file whose time has changed for another one, and images of containers keep no
    fractions.
    """
    for path in _kernel_modules():
        changed = int(path.stat().st_mtime)
        os.utime(path, (changed, changed))


def _kernel_modules() -> list[Path]:
    paths = sorted(Path(__file__).parent.rglob("*.py"))
    return [path for path in paths if b"@kernel" in path.read_bytes()]


@cache
def _folder() -> Path | None:
    """Return the folder for compiled code; None if there is none that can be written."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in _kernel_modules()))
    name = f"compiled-{digest.hexdigest()[:16]}"
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
