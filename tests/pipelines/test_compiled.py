"""Who waits for whom when several processes of a machine need the same native code."""

import fcntl
from pathlib import Path

import pytest

from pipelines import compiled
from pipelines.compiled import compiling, kept


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
    with compiling(["a", "b"]):
        assert locked(folder)
        with compiling(), compiling(["c"]):
            assert locked(folder)
        assert locked(folder)
    assert not locked(folder)
    assert kept(["a"])
    assert kept(["b", "a"])
    assert not kept(["a", "c"])
    with compiling(["a", "b"]):
        assert not locked(folder)
    with compiling(["a", "c"]):
        assert locked(folder)


def test_without_names_one_always_has_to_wait(folder: Path) -> None:
    for _ in range(2):
        with compiling():
            assert locked(folder)


def test_what_failed_is_not_kept(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), compiling(["a"]):
        raise ZeroDivisionError
    assert not kept(["a"])
    with compiling(["a"]):
        assert locked(folder)


def test_another_processor_compiles_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with compiling(["a"]):
        pass
    monkeypatch.setattr(compiled, "_processor", lambda: "another")
    assert not kept(["a"])


def test_where_nothing_can_be_kept_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_folder", lambda: None)
    with compiling(["a"]):
        assert not kept(["a"])
    assert not kept([])
