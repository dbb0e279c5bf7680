import errno
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from shards.exports.formats import FORMATS
from shards.storage.remote import RemotePath
from tests.shards.datasets import tree
from tests.shards.exports.worlds import World, export
from tests.shards.kills import is_killed_at

FLAGS = {"llm.c": ["--tokens-per-file", "300"]}


@pytest.mark.parametrize("to", FORMATS)
def test_a_kill_costs_the_file_under_way(
    world: World, tmp_path: Path, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(world, to, tmp_path / "calm", *FLAGS.get(to, [])) == 0
    out = tmp_path / "out"
    for moment in (1, 3, 3):
        assert is_killed_at(moment, lambda: export(world, to, out, *FLAGS.get(to, [])))
        assert not (out / "export.json").exists()
    assert any(name.rpartition("/")[2].startswith(".tmp-") for name in tree(out))
    before = {path: path.stat().st_ino for path in out.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert export(world, to, out, *FLAGS.get(to, [])) == 0
    kept = [line for line in capsys.readouterr().out.splitlines() if line.endswith(": was there")]
    assert len(kept) >= 2
    for line in kept:
        path = out / line.split()[4].rstrip(":")
        assert path.stat().st_ino == before[path]
    assert tree(out) == tree(tmp_path / "calm")
    assert not (out / ".export.json").exists()


def test_where_links_are_refused_it_copies(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "by the test")

    assert export(world, "olmo", tmp_path / "calm") == 0
    assert any(path.stat().st_nlink > 1 for path in (tmp_path / "calm").rglob("*.npy"))
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    out = tmp_path / "out"
    assert export(world, "olmo", out) == 0
    assert tree(out) == tree(tmp_path / "calm")
    assert all(path.stat().st_nlink == 1 for path in out.rglob("*.npy"))


@pytest.mark.parametrize("to", FORMATS)
def test_behind_a_url_the_files_are_the_same(
    world: World, remote: RemotePath, tmp_path: Path, to: str
) -> None:
    for name, content in tree(world.directory).items():
        (remote / name).write(content)
    assert export(str(remote), to, tmp_path / "far") == 0
    assert export(world, to, tmp_path / "near") == 0
    assert tree(tmp_path / "far") == tree(tmp_path / "near")


def test_room_is_asked_for_first(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    with patch("shards.exports.export.shutil.disk_usage", return_value=full):
        assert export(world, "numpy", tmp_path / "out") == 2
    assert "0 MB are to be written to" in capsys.readouterr().err
    assert not [*tmp_path.rglob("*.npy")]
