import errno
import re
import shutil
import uuid
from pathlib import Path
from unittest.mock import patch

import pytest

from shards.exports.formats import FORMATS
from shards.storage.remote import RemotePath
from tests.shards.datasets import tree
from tests.shards.exports.worlds import World, build, export
from tests.shards.kills import is_killed_at

FLAGS = {"llm.c": ["--tokens-per-file", "300"]}


@pytest.fixture
def own(tmp_path: Path) -> World:
    """A dataset of the test's own."""
    return build(tmp_path / "own")


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


@pytest.mark.parametrize("to", ["olmo", "datatrove"])
def test_payloads_are_linked_where_nothing_was_removed(
    world: World, tmp_path: Path, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert export(world, to, out) == 0
    linked = [
        line.split()[4] for line in capsys.readouterr().out.splitlines() if line.endswith(" link")
    ]
    suffix = {"olmo": "npy", "datatrove": "ds"}[to]
    payloads = {path.relative_to(out).as_posix(): path for path in out.glob(f"*/*.{suffix}")}
    inodes = {path.stat().st_ino for path in world.directory.rglob("*.bin")}
    shared = {name for name, path in payloads.items() if path.stat().st_ino in inodes}
    # Four of seven shards lost documents, and a removed one must not be reached through a link.
    assert shared == {f"validation/000000_news.{suffix}"} | {
        f"train/{name}.{suffix}" for name in ("000001_news", "000003_web", "000004_news")
    }
    assert {name.rstrip(":") for name in linked} == shared
    assert export(world, to, tmp_path / "copy", "--copy") == 0
    linked_tree, copied_tree = tree(out), tree(tmp_path / "copy")
    assert linked_tree.pop("export.json") != copied_tree.pop("export.json")
    assert copied_tree == linked_tree
    copies = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert all(path.stat().st_nlink == 1 for path in copies)


def test_where_links_are_refused_it_copies(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "by the test")

    assert export(world, "olmo", tmp_path / "calm") == 0
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    out = tmp_path / "out"
    assert export(world, "olmo", out) == 0
    assert tree(out) == tree(tmp_path / "calm")
    assert all(path.stat().st_nlink == 1 for path in out.rglob("*.npy"))


@pytest.mark.parametrize("to", FORMATS)
def test_behind_a_url_the_files_are_the_same(world: World, tmp_path: Path, to: str) -> None:
    remote = RemotePath(f"memory://{uuid.uuid4().hex}")
    for name, content in tree(world.directory).items():
        (remote / name).write(content)
    assert export(str(remote), to, tmp_path / "far") == 0
    assert export(world, to, tmp_path / "near") == 0
    assert tree(tmp_path / "far") == tree(tmp_path / "near")
    remote.remove([*remote.files()])


@pytest.mark.parametrize("suffix", ["bin", "arrow"])
def test_a_damaged_shard_is_not_handed_on(
    own: World, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own.directory / "g0001-00aa" / "news" / f"00002.{suffix}"
    content = bytearray(path.read_bytes())
    content[-5 if suffix == "bin" else 20] ^= 1
    path.write_bytes(content)
    for to in FORMATS:
        out = tmp_path / to
        assert export(own, to, out) == 2
        error = capsys.readouterr().err
        assert re.search(rf"news/00002\.{suffix} .*is damaged", error), error
        assert not (out / "export.json").exists()
        assert not (out / "train" / "000001_news.npy").exists()


def test_room_is_asked_for_first(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    with patch("shards.exports.export.shutil.disk_usage", return_value=full):
        assert export(world, "numpy", tmp_path / "out") == 2
    assert "0 MB are to be written to" in capsys.readouterr().err
    assert not [*tmp_path.rglob("*.npy")]
