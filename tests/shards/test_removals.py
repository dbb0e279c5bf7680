from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from shards.errors import DamageError
from shards.manifest import Removal, TableEntry, read_manifest, write_manifest
from shards.reader import Dataset
from shards.removals import SCHEMA
from shards.storage.files import atomic_write
from tests.shards.conftest import GENERATION


def remove(directory: Path, rows: Sequence[tuple[str, str, int, int]], *, number: int = 2) -> None:
    """Remove rows (source, split, shard, row), as a further number of the manifest."""
    table = pa.table([[GENERATION] * len(rows), *map(list, zip(*rows, strict=True))], schema=SCHEMA)
    path = directory / "removals" / f"{number:04d}.arrow"
    with atomic_write(path) as handle, pa.ipc.new_file(handle, SCHEMA) as writer:
        writer.write_table(table)
    entry = TableEntry(path=f"removals/{path.name}", rows=len(rows), **vars(handle.entry))
    manifest = read_manifest(directory)
    removal = Removal(number=number, reason="asked", documents=entry)
    write_manifest(
        directory, replace(manifest, number=number, removals=(*manifest.removals, removal))
    )


def test_shards_know_what_was_removed(dataset: Path) -> None:
    remove(dataset, [("wudao", "train", 2, 2), ("wudao", "train", 2, 0), ("pile", "train", 0, 1)])
    remove(dataset, [("wudao", "train", 2, 0), ("wudao", "validation", 0, 0)], number=3)
    opened = Dataset.open(dataset)
    removed = [shard.removed.tolist() for shard in opened.documents().shards()]
    assert removed == [[1], [], [], [0, 2], []]
    assert next(opened.documents(split="validation").shards()).removed.tolist() == [0]
    before = Dataset.open(f"{dataset}@2").documents(split="validation")
    assert next(before.shards()).removed.tolist() == []


def test_documents_are_still_read_by_row(dataset: Path) -> None:
    before = [document.tolist() for document in Dataset.open(dataset).documents()]
    remove(dataset, [("wudao", "train", 0, 0)])
    assert [document.tolist() for document in Dataset.open(dataset).documents()] == before


@pytest.mark.parametrize(
    "row", [("wudao", "train", 4, 0), ("wudao", "train", 0, 2), ("x", "train", 0, 0)]
)
def test_rows_that_are_not_there(dataset: Path, row: tuple[str, str, int, int]) -> None:
    remove(dataset, [row])
    with pytest.raises(DamageError, match=r"0002\.arrow removes rows of g0001-\w+/\w+/train/\d"):
        _ = Dataset.open(dataset).removed


def test_a_damaged_removal(dataset: Path) -> None:
    remove(dataset, [("wudao", "train", 0, 0)])
    (dataset / "removals" / "0002.arrow").write_bytes(b"nothing")
    with pytest.raises(DamageError, match=r"0002\.arrow is not a removal \(.*restore it"):
        _ = Dataset.open(dataset).removed
