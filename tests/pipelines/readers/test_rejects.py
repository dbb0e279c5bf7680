from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Split, split_file
from pipelines.readers.rejects import PLACES, WHOLE, Rejects

FILE = InputFile(source="s", path="/nowhere/a.jsonl", relative="a.jsonl", bytes=300, mtime_ns=1)


def places(*rows: tuple[int, int, int, str]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, PLACES, strict=True)], PLACES)


ALL = places(
    (0, 10, WHOLE, "nul"),
    (99, 5, WHOLE, "bad-json"),
    (100, 20, 1, "tokenizer-failed"),
    (100, 20, 3, "tokenizer-failed"),
    (300, 0, WHOLE, "truncated"),
    (900, 4, WHOLE, "bad-utf8"),
)


def rejects(folder: Path, chain: list[Split], crc32c: tuple[int, ...] | None) -> Rejects:
    made = Rejects(folder=folder, dataset="d", reasons=())
    made.write(ALL, chain, crc32c=crc32c)
    return made


@pytest.mark.parametrize("crc32c", [(7, 8, 9), None])
def test_each_split_has_what_begins_in_it_and_the_last_one_the_rest(
    tmp_path: Path, crc32c: tuple[int, ...] | None
) -> None:
    chain = split_file(FILE, 100)
    made = rejects(tmp_path, chain, crc32c)
    found = [made.of(split) for split in chain]
    assert [each.table["position"].to_pylist() for each in found] == [
        [0, 99],
        [100, 100],
        [300, 900],
    ]
    assert tuple(each.crc32c for each in found) == (crc32c or (None, None, None))
    assert found[1].reasons() == {(100, 20): "tokenizer-failed"}
    assert pa.concat_tables([each.table for each in found]).to_pylist() == ALL.to_pylist()


def test_of_a_record_whose_siblings_were_kept_those_that_were_not_are_taken(
    tmp_path: Path,
) -> None:
    (whole,) = split_file(FILE, 300)
    found = rejects(tmp_path, [whole], (1,)).of(whole)
    positions = np.array([0, 0, 99, 100, 100, 100, 100, 101])
    ordinals = np.array([0, 1, 0, 0, 1, 2, 3, 0], np.int32)
    assert found.among(positions, ordinals).tolist() == [
        *(True, True, True),
        *(False, True, False, True),
        False,
    ]


def test_facts_are_what_decides_bytes(tmp_path: Path) -> None:
    one = Rejects(folder=tmp_path, dataset="d", reasons=("b", "a"))
    other = Rejects(folder=tmp_path / "else", dataset="d", reasons=("a", "b"))
    assert one.facts() == other.facts()
    assert one.facts() != Rejects(folder=tmp_path, dataset="e", reasons=("a", "b")).facts()
