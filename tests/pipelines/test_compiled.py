"""What is trusted, where native code is kept, and who waits for whom when several need it."""

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines import compiled
from pipelines.compiled import compiling, kept, proven

FOLDER = compiled._folder.__wrapped__

needs_numba = pytest.mark.skipif(
    not compiled.available(), reason="numba is missing or switched off"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(compiled, "_folder", lambda: tmp_path)
    return tmp_path


def locked(folder: Path) -> bool:
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_one_process_compiles_and_the_next_ones_find_it(folder: Path) -> None:
    with compiling("a"):
        assert locked(folder)
        with compiling("b"):
            assert locked(folder)
        assert locked(folder)
    assert not locked(folder)
    assert kept(["a", "b"])
    assert not kept(["a", "c"])
    with compiling("a"):
        assert not locked(folder)
    with compiling("c"):
        assert locked(folder)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a module of kernels, as installed; the cache folder of its user is empty."""
    package = tmp_path / "pipelines"
    (package / "quality").mkdir(parents=True)
    (package / "quality" / "loops.py").write_text("@kernel\ndef f(): ...")
    (package / "plain.py").write_text("def f(): ...")
    monkeypatch.setattr(compiled, "__file__", str(package / "compiled.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return package


def test_code_is_kept_beside_the_package_by_the_sources_of_all_kernels(package: Path) -> None:
    first = FOLDER()
    assert first.parent == package / "__pycache__"
    (package / "plain.py").write_text("def g(): ...")
    assert FOLDER() == first
    (package / "quality" / "loops.py").write_text("@kernel\ndef g(): ...")
    assert FOLDER() != first


def test_who_cannot_write_there_begins_with_a_copy(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FOLDER()
    (made / "loops").mkdir()
    (made / "loops" / "f.nbi").write_text("native")
    monkeypatch.setattr(compiled, "_is_writable", lambda path: package not in path.parents)
    own = FOLDER()
    assert own == tmp_path / "cache" / "corpusmill" / made.name
    assert (own / "loops" / "f.nbi").read_text() == "native"
    assert [path.name for path in own.parent.iterdir()] == [made.name]
    (own / "loops" / "f.nbi").write_text("newer")
    assert FOLDER() == own
    assert (own / "loops" / "f.nbi").read_text() == "newer"
    monkeypatch.setattr(compiled, "_is_writable", lambda _: False)
    assert FOLDER() is None


def test_times_of_modules_with_kernels_survive_in_an_image(package: Path) -> None:
    for name in ("plain.py", "quality/loops.py"):
        os.utime(package / name, (7.5, 7.5))
    compiled.use_whole_seconds()
    assert (package / "quality" / "loops.py").stat().st_mtime == 7
    assert (package / "plain.py").stat().st_mtime == 7.5


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


@pytest.mark.parametrize("part", ["", pytest.param("halves", marks=needs_numba)])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: third, "half of 1 is 0.33"),
        (lambda: no_half, "ZeroDivisionError: no half"),
        (refused, "it only halves on Mondays"),
        (unmade, "RuntimeError: Cannot compile"),
    ],
    ids=["other", "fails", "refused", "unmade"],
)
@needs_numba
def test_what_does_not_do_as_the_plain_one_is_not_used(
    make: Callable[[], Callable[[int], float]],
    why: str,
    caplog: pytest.LogCaptureFixture,
    part: str,
) -> None:
    compiled.use_native(True)
    for _ in range(2):
        chosen = proven(
            "Fast halving", make, wrong_half, plain=half, instead="Long division", part=part
        )
        assert chosen is half
    assert caplog.messages == [f"Fast halving is not used: {why}. Long division takes its place."]


@needs_numba
def test_a_process_decides_which_kernels_it_uses() -> None:
    with compiling("old"):
        pass
    used = {}
    for wanted in (True, False, None):
        compiled.use_native(wanted)
        used[wanted] = [
            proven("Halving", lambda: half, wrong_half, plain=third, part=part) is half
            for part in ("old", "new")
        ]
        (compiled._folder() or Path()).joinpath(compiled._marks(Path(), ["new"])[0]).unlink(True)
    assert used == {True: [True, True], False: [False, False], None: [True, False]}


def test_numba_that_cannot_be_imported_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unasked() -> None:
        raise AssertionError

    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 2.3 or less.')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    compiled.use_native(True)
    for name in ("Halving", "Doubling"):
        assert proven(name, unasked, wrong_half, plain=third, part="a") is third
    with compiling("a"):
        pass
    assert not kept(["a"])
    assert caplog.messages == [
        "numba cannot be imported: ImportError: Numba needs NumPy 2.3 or less. "
        "Nothing is compiled, which is slower."
    ]
    assert proven("Halving", lambda: half, wrong_half, plain=None) is half


@pytest.mark.parametrize("why", ["missing", "disabled"])
def test_where_no_native_code_is_wanted_nothing_is_said(
    why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if why == "disabled":
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    else:
        monkeypatch.setitem(sys.modules, "numba", None)
    compiled.use_native(True)
    assert proven("Halving", refused, wrong_half, plain=half, part="halves") is half
    assert not kept([])
    assert caplog.messages == []
