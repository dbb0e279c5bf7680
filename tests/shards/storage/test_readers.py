import os
import signal
from pathlib import Path

import pytest

from shards.storage.readers import Hold, admit_readers, excluded, remember
from shards.storage.remote import RemotePath


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two earlier lineages, which have a name in common."""
    admit_readers(tmp_path)
    remember(tmp_path, "first", ["a", "b"])
    remember(tmp_path, "second", ["b", "c"])
    return tmp_path


def read(folder: Path, *, forget: bool = False) -> set[str]:
    with excluded(folder, but="third", forget=forget) as names:
        return set(names)


def test_what_a_held_lineage_names_is_read(folder: Path) -> None:
    assert read(folder) == set()
    first, other = Hold.on(folder, "first"), Hold.on(folder, "first")
    second = Hold.on(folder, "second")
    assert read(folder) == {"a", "b", "c"}
    del first
    assert read(folder) == {"a", "b", "c"}
    del other
    assert read(folder) == {"b", "c"}
    del second
    assert read(folder) == set()


def test_readers_of_the_present_lineage_do_not_count(folder: Path) -> None:
    hold = Hold.on(folder, "second")
    with excluded(folder, but="second") as names:
        assert names == set()
        assert Hold.on(folder, "second") is not None
    assert hold is not None


def test_nobody_takes_hold_of_what_is_excluded(folder: Path) -> None:
    with excluded(folder, but="third"):
        with pytest.raises(BlockingIOError):
            Hold.on(folder, "first")
        assert Hold.on(folder, "third") is not None
    assert Hold.on(folder, "first") is not None


def test_what_nobody_reads_is_forgotten(folder: Path) -> None:
    hold = Hold.on(folder, "first")
    assert read(folder, forget=True) == {"a", "b"}
    assert "second" not in (folder / ".lineages").read_text()
    with pytest.raises(KeyError), excluded(folder, but="third", forget=True):
        raise KeyError  # what nobody reads could not be deleted
    assert "first" in (folder / ".lineages").read_text()
    del hold
    assert read(folder, forget=True) == set()
    assert not (folder / ".lineages").exists()
    assert read(folder, forget=True) == set()


def test_a_fork_holds_until_it_ends(folder: Path) -> None:
    hold = Hold.on(folder, "first")
    child = os.fork()
    if not child:
        signal.pause()
    del hold
    assert read(folder) == {"a", "b"}
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert read(folder) == set()


def test_a_reader_goes_on_without_locks(tmp_path: Path) -> None:
    assert Hold.on(tmp_path, "first") is None
    assert list(tmp_path.iterdir()) == []
    remote = RemotePath("memory://x")
    assert Hold.on(remote, "first") is None
    remember(remote, "first", ["a"])
    with excluded(remote, but="second") as names:
        assert names == set()


def test_a_reader_needs_no_permission_to_write(folder: Path) -> None:
    (folder / ".readers").chmod(0o444)
    folder.chmod(0o555)
    hold = Hold.on(folder, "second")
    assert hold is not None
    folder.chmod(0o755)
    (folder / ".readers").chmod(0o644)
    assert read(folder) == {"b", "c"}
