"""What is trusted, where native code is kept, and who waits for whom when several need it."""

import fcntl
import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from pipelines import compiled

needs_numba = pytest.mark.skipif(
    not compiled.available(), reason="numba is missing or switched off"
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a module of kernels, as installed; the cache folder of its user is empty."""
    package = tmp_path / "pipelines"
    (package / "quality").mkdir(parents=True)
    shutil.copyfile(compiled.__file__, package / "compiled.py")
    (package / "quality" / "loops.py").write_text("@kernel\ndef f(): ...")
    (package / "plain.py").write_text("def f(): ...")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return package


def begun(package: Path) -> Any:
    """The module as a new process of the package has it."""
    spec = spec_from_file_location("compiled", package / "compiled.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def held(package: Path) -> list[Path]:
    """The folders of native code in which a process compiles."""
    found = []
    for path in package.parent.rglob("lock"):
        with path.open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append(path.parent)
    return found


@needs_numba
def test_one_process_compiles_and_the_next_ones_find_it(package: Path) -> None:
    process = begun(package)
    with process.compiling("a"):
        assert held(package)
        with process.compiling("b"):
            assert held(package)
        assert held(package)
    assert not held(package)
    assert process.kept(["a", "b"])
    assert not process.kept(["a", "c"])
    with process.compiling("a"):
        assert not held(package)
    with process.compiling("c"):
        assert held(package)


def compiled_in(package: Path, part: str) -> list[Path]:
    """The folder in which a new process compiles a part, if there is one."""
    with begun(package).compiling(part):
        return held(package)


@needs_numba
def test_code_is_kept_by_the_sources_of_all_kernels_where_one_may_write(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = compiled_in(package, "a")
    assert made.parent == package / "__pycache__"
    (package / "plain.py").write_text("def g(): ...")
    assert compiled_in(package, "b") == [made]
    (made / "f.nbi").write_text("native")
    # Whoever cannot write there begins with a copy.
    monkeypatch.setattr(os, "access", lambda path, _: package not in path.parents)
    (own,) = compiled_in(package, "c")
    assert own == tmp_path / "cache" / "corpusmill" / made.name
    assert [path.name for path in own.parent.iterdir()] == [made.name]
    assert (own / "f.nbi").read_text() == "native"
    (own / "f.nbi").write_text("newer")
    assert compiled_in(package, "d") == [own]
    assert (own / "f.nbi").read_text() == "newer"
    (package / "quality" / "loops.py").write_text("@kernel\ndef g(): ...")
    assert compiled_in(package, "e") != [own]
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert compiled_in(package, "f") == []


# --- fast and plain


def half(number: int) -> float:
    return number / 2


def third(number: int) -> float:
    return number / 3


def no_half(_: int) -> float:
    raise ZeroDivisionError("no half\n  at line 1\n  at line 2")


def wrong_half(half: Callable[[int], float]) -> str | None:
    return None if half(1) == 0.5 else f"half of 1 is {half(1):.2f}"


def refused() -> Callable[[int], float]:
    raise ValueError("it only halves on Mondays")


def unmade() -> Callable[[int], float]:
    raise RuntimeError("Cannot compile.\nLong story")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: third, "half of 1 is 0.33"),
        (lambda: no_half, "ZeroDivisionError: no half"),
        (refused, "it only halves on Mondays"),
        (unmade, "RuntimeError: Cannot compile"),
    ],
)
@needs_numba
def test_what_does_not_do_as_the_plain_one_is_not_used(
    make: Callable[[], Callable[[int], float]],
    why: str,
    package: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = begun(package)
    process.use_native(True)
    for _ in range(2):
        words = {"instead": "Long division", "part": "halves"}
        assert process.proven("Fast halving", make, wrong_half, plain=half, **words) is half
    assert caplog.messages == [f"Fast halving is not used: {why}. Long division takes its place."]


BROKEN = (
    "numba cannot be imported: ImportError: Numba needs NumPy 2.3 or less. "
    "Nothing is compiled, which is slower."
)


@pytest.mark.parametrize(("why", "said"), [("missing", []), ("disabled", []), ("broken", [BROKEN])])
def test_where_numba_cannot_be_used_plain_functions_are(
    why: str,
    said: list[str],
    package: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", str(int(why == "disabled")))
    if why == "missing":
        monkeypatch.setitem(sys.modules, "numba", None)
    elif why == "broken":
        (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 2.3 or less.')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "numba", raising=False)
    process = begun(package)
    process.use_native(True)
    for name in ("Halving", "Doubling"):
        assert process.proven(name, refused, wrong_half, plain=third, part="a") is third
    with process.compiling("a"):
        pass
    assert not process.kept(["a"])
    assert caplog.messages == said
    # What is fast without numba is used.
    assert process.proven("Halving", lambda: half, wrong_half, plain=None) is half
