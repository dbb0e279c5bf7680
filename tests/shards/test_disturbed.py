"""Commands write the same files if they are killed and repeated, or write behind a URL."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.exports.formats import FORMATS
from shards.maintenance.verify import verify
from shards.manifest import read_manifest
from shards.reader import Dataset
from shards.storage.remote import RemotePath
from tests.shards.datasets import take_down, tree
from tests.soak.commands import Trap, kill_group, start
from tests.soak.dataset import DocumentKey, PlainDataset

EXPORTS = [f"export DATA --to {to} --output OUT" for to in FORMATS]


def words_of(command: str, folder: Path) -> list[str]:
    """Return the words of a command on a dataset in a folder."""
    return command.replace("DATA", str(folder / "data")).replace("OUT", str(folder / "out")).split()


def is_killed(command: str, folder: Path, change: int) -> bool:
    """Run a command that is killed before change `change` of the disk; return whether it was."""
    words = ["shards", *words_of(command, folder)]
    started = start(words, log=folder / "log", trap=Trap(change, kill_group))
    return started.wait().code == -9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "changes"),
    [
        (f"remove DATA --id {7:032x} --reason letter", (1, 5)),
        ("compact DATA", (1, 5, 60, 130)),
        ("compact DATA --erase", (1, 5, 60, 134)),  # the last kill is during the deletion
        ("place DATA --to OUT", (1, 40, 9)),
        *((command, (1, 5, 4)) for command in EXPORTS),
    ],
)
def test_a_kill_costs_the_file_under_way(
    grown: Path, tmp_path: Path, command: str, changes: Sequence[int]
) -> None:
    calm, harmed = tmp_path / "calm", tmp_path / "harmed"
    for folder in (calm, harmed):
        shutil.copytree(grown, folder / "data")
    assert main(words_of(command, calm)) == 0
    numbers = []
    for change in changes:
        assert is_killed(command, harmed, change), change
        numbers.append(read_manifest(harmed / "data").number)
        assert list(verify(Dataset.open(harmed / "data"))) == []
        assert not [*harmed.glob("out/export.json"), *harmed.glob("out/manifest.json")]
    assert len({*numbers}) == 1 + ("--erase" in command)
    before = {path: path.stat().st_ino for path in harmed.rglob("*") if path.is_file()}
    assert main(words_of(command, harmed)) == 0
    (harmed / "log").unlink()
    for manifest in (*calm.glob("*/manifest.json"), *harmed.glob("*/manifest.json")):
        assert main(["prune", str(manifest.parent), "--days", "0"]) == 0
    assert tree(harmed) == tree(calm)
    own = {harmed / "data" / path.relative_to(grown) for path in grown.rglob("*")}
    kept = [path for path in before if path.exists() and path.stat().st_ino == before[path]]
    assert ({*kept} <= own) == command.startswith("remove")


def removed_places(folder: Path) -> set[DocumentKey]:
    plain = PlainDataset(folder)
    removed = plain.removed()
    return {one.key for one in plain.stored() if (one.shard, one.row) in removed}


def test_what_is_removed_after_a_kill_is_left_out(grown: Path, tmp_path: Path) -> None:
    shutil.copytree(grown, tmp_path / "data")
    assert is_killed("compact DATA", tmp_path, 120)
    take_down(tmp_path / "data", f"{8:032x}")
    before = removed_places(tmp_path / "data")
    assert len(before) == 3
    assert main(words_of("compact DATA", tmp_path)) == 0
    assert before.isdisjoint(one.key for one in PlainDataset(tmp_path / "data").stored())
    assert removed_places(tmp_path / "data") == set()
    assert list(verify(Dataset.open(tmp_path / "data"))) == []


def test_behind_a_url_the_files_are_the_same(
    grown: Path, remote: RemotePath, tmp_path: Path
) -> None:
    for name, content in tree(grown).items():
        (remote / name).write(content)
    places = {"near": str(grown), "far": str(remote)}
    for name, key in places.items():
        for to in FORMATS:
            output = str(tmp_path / name / to)
            assert main(["export", key, "--to", to, "--output", output]) == 0
        take_down(key, f"{8:032x}")
    assert tree(tmp_path / "near") == tree(tmp_path / "far")
    assert list(verify(Dataset.open(remote))) == []
    for key in places.values():
        assert main(["prune", key, "--days", "0"]) == 0
        assert main(["compact", key, "--erase"]) == 0
    names = [name for name in remote.files() if name[:5] != ".lock"]
    assert {name: (remote / name).read() for name in names} == tree(grown)
