import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shards.__main__ import main
from shards.compact import Compaction
from shards.manifest import TRAIN, VALIDATION, SourceEntry, read_manifest, write_manifest
from shards.merged import least_shards
from shards.reader import Dataset
from shards.verify import verify
from tests.shards.datasets import take_down, tree
from tests.shards.generations import documents_of, grow
from tests.shards.kills import is_killed_at


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five generations; no test changes them."""
    directory = tmp_path_factory.mktemp("grown") / "dataset"
    for shards in (2, 1, 2, 4, 1):
        grow(directory, shards=shards)
    return directory


@pytest.fixture(scope="module")
def compacted(grown: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, compacted in peace."""
    directory = Path(shutil.copytree(grown, tmp_path_factory.mktemp("compacted") / "dataset"))
    assert main(["compact", str(directory)]) == 0
    return directory


@pytest.fixture
def dataset(grown: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(grown, tmp_path / "dataset"))


def is_killed_compacting(directory: Path, moment: int | str) -> bool:
    return is_killed_at(moment, lambda: main(["compact", str(directory)]))


@pytest.mark.slow
def test_a_kill_at_any_file_costs_that_file(
    grown: Path, dataset: Path, compacted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = (grown / "manifest.json").read_bytes()
    # A shard is three files and a record, a table one and a record: some are killed at each.
    moments = (1, 3, 4, 5, 1, 2, 9, 30, 7, 2)
    for moment in moments:
        assert is_killed_compacting(dataset, moment)
        assert (dataset / "manifest.json").read_bytes() == manifest
    assert documents_of(dataset) == documents_of(grown)
    before = {path: path.stat().st_ino for path in dataset.glob("g0006-*/*/*")}
    capsys.readouterr()
    assert main(["compact", str(dataset)]) == 0
    lines = capsys.readouterr().out.splitlines()
    num_parts = int(lines[1].split()[3])
    assert 0 < len(lines) - 2 < num_parts
    finished = [path for path, inode in before.items() if path.stat().st_ino == inode]
    assert len(finished) > 10
    assert main(["prune", str(dataset), "--days", "0"]) == 0
    assert tree(dataset) == {
        name: content
        for name, content in tree(compacted).items()
        if name.partition("/")[0] not in {item.name for item in read_manifest(grown).generations}
    }


def test_what_is_removed_after_a_kill_stays_removed(tmp_path: Path) -> None:
    for _ in range(2):
        grow(tmp_path, shards=1)
    assert is_killed_compacting(tmp_path, "manifest.json")
    take_down(tmp_path, f"{read_manifest(tmp_path).shards('news')[0].path}:0")
    before = removed_of(tmp_path)
    assert before.total() == 1
    assert main(["compact", str(tmp_path)]) == 0
    assert removed_of(tmp_path) == before
    assert list(verify(Dataset.open(tmp_path))) == []


def removed_of(directory: Path) -> Counter[tuple[str, tuple[Any, ...]]]:
    """Split, and tokens, of every removed document."""
    dataset = Dataset.open(directory)
    return Counter(
        (Path(path).parent.name, tuple(shard[row].tolist()))
        for split in (TRAIN, VALIDATION)
        for path, shard in (
            (entry.path, dataset.shard(entry)) for entry in dataset.manifest.shards(split=split)
        )
        for row in shard.removed.tolist()
    )


def test_a_kind_of_signatures_that_one_lacks_is_dropped(dataset: Path) -> None:
    manifest = read_manifest(dataset)
    first, *rest = manifest.generations
    without = tuple(table for table in first.signatures if "exact" in table.path)
    generations = (replace(first, signatures=without), *rest)
    write_manifest(dataset, replace(manifest, generations=generations))
    assert main(["compact", str(dataset)]) == 0
    (made,) = read_manifest(dataset).generations
    assert {Path(table.path).stem for table in made.signatures} == {"exact-00000"}


@pytest.mark.parametrize(
    ("tokens", "shards"),
    [([10], 1), ([11], 2), ([20], 2), ([21], 4), ([0], 1), ([5, 5], 1), ([1, 10], 2), ([1, 11], 4)],
)
def test_shards_have_at_most_the_limit(tokens: list[int], shards: int) -> None:
    assert least_shards(np.array(tokens), 10) == shards


def test_a_generation_without_documents(dataset: Path) -> None:
    manifest = read_manifest(dataset)
    first, *rest = manifest.generations
    empty = SourceEntry(shards=(), validation=())
    for others in ([first], rest):  # nothing beside something, then nothing at all
        nothing = replace(first, name="g0000-0", sources={"news": empty, "wiki": empty}, audit=())
        write_manifest(dataset, replace(manifest, generations=(nothing, *others)))
        before = documents_of(dataset)
        assert main(["compact", str(dataset)]) == 0
        assert documents_of(dataset) == before
        assert list(verify(Dataset.open(dataset))) == []
    write_manifest(dataset, replace(manifest, generations=(nothing, nothing)))
    assert main(["compact", str(dataset)]) == 0
    assert read_manifest(dataset).generations[0].sources == {"news": empty, "wiki": empty}


@pytest.mark.parametrize("folder", [".work", ".work/compact", "g0003-{}", "removals"])
def test_nothing_is_written_through_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    grow(tmp_path / "dataset", shards=1)
    manifest = grow(tmp_path / "dataset", shards=1)
    name = Compaction(Dataset.open(tmp_path / "dataset")).name
    link = tmp_path / "dataset" / (name if folder.startswith("g") else folder)
    (tmp_path / "elsewhere").mkdir()
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere")
    words = ["compact"] if folder != "removals" else ["remove", "--reason", "x", "--id"]
    found = [f"{manifest.shards()[0].path}:0"] if folder == "removals" else []
    assert main([*words, *found, str(tmp_path / "dataset")]) == 2
    said = capsys.readouterr().err
    assert f"{link}" in said
    assert " leads by a link to " in said
    assert list((tmp_path / "elsewhere").iterdir()) == []
