import errno
import fcntl
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.storage.links import link


def test_twice_and_over_another_file(tmp_path: Path) -> None:
    (source := tmp_path / "a").write_bytes(b"tokens")
    (target := tmp_path / "b").write_bytes(b"others")
    for _ in range(2):  # the second time both are names of one file already
        assert link(source, target) is not None
        assert target.read_bytes() == b"tokens"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_link_stands_for_its_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"tokens")
    (tmp_path / "link").symlink_to("a")
    assert link(tmp_path / "link", tmp_path / "b") is not None
    assert not (tmp_path / "b").is_symlink()
    assert (tmp_path / "b").read_bytes() == b"tokens"


def refuse(number: int) -> object:
    def refused(*_: object) -> None:
        raise OSError(number, "refused")

    return refused


def test_where_there_are_no_links_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source := tmp_path / "a").write_bytes(b"tokens")
    monkeypatch.setattr(fcntl, "ioctl", refuse(errno.EOPNOTSUPP))
    monkeypatch.setattr(Path, "hardlink_to", refuse(errno.EXDEV))
    assert link(source, tmp_path / "b") is None
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source := tmp_path / "a").write_bytes(b"tokens")
    monkeypatch.setattr(fcntl, "ioctl", refuse(errno.EOPNOTSUPP))
    monkeypatch.setattr(Path, "hardlink_to", refuse(errno.ENOSPC))
    with pytest.raises(UserError, match="no space left on the disk that holds"):
        link(source, tmp_path / "b")
