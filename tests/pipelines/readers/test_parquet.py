import itertools
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.inputs.files import InputFile
from pipelines.readers.parquet import ParquetReader
from pipelines.readers.reading import open_reader, splits
from pipelines.readers.record import Damage
from tests.pipelines.readers.readings import (
    damages,
    input_file,
    read_file,
    read_in_splits,
    reading,
    values,
)

ROWS = [{"text": f"第{index}篇 " + chr(97 + index % 26) * 60} for index in range(20)]


def table(path: Path, rows: Any = None, *, group: int = 3, **options: Any) -> InputFile:
    content = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows or ROWS)
    options = {"compression": "none", "use_dictionary": False, **options}
    pq.write_table(content, path, row_group_size=group, **options)
    return input_file(path)


def test_of_what_is_too_long_no_value_is_made(tmp_path: Path) -> None:
    """A cell of text or of another column: Python would hold it twice, and its row is damage."""
    long = 20 << 20
    texts = ["a", "x" * long, "b", "c"]
    others = [b"1", b"2", b"y" * long, b"3"]
    for use_dictionary in (False, True):
        file = table(
            tmp_path / f"{use_dictionary}.parquet",
            pa.table({"text": texts, "other": others}),
            group=4,
            compression="zstd",
            use_dictionary=use_dictionary,
        )
        (split,) = splits(file, reading(), split_bytes=file.bytes)
        tracemalloc.start()
        try:
            items = list(open_reader(split, reading(max_record_bytes=1 << 20)))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 8 << 20
        assert [value["text"] for value in values(items)] == ["a", "c"]
        assert damages(items) == [(1, 1, "too-long"), (2, 1, "too-long")]
        assert [len(item.raw) for item in items if isinstance(item, Damage)] == [64 << 10, 1]


def test_only_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    """What a row has besides costs nothing, be it too long, and is there where all is asked for."""
    columns = {
        "text": ["a", "b"],
        "meta": [{"body": "c", "x": 1}, {"body": "d", "x": 2}],
        "meta.id": ["1", "2"],
        "page": [b"x" * 2000, b"y"],
    }
    file = table(tmp_path / "a.parquet", pa.table(columns))
    rows = pa.table(columns).to_pylist()
    for fields, read, damaged in (
        (None, [*columns], [0]),
        (("text", "id"), ["text"], []),
        (("meta.body", "text"), ["text", "meta"], []),
        (("text", "meta.id"), ["text", "meta", "meta.id"], []),
        (("text", "page"), ["text", "page"], [0]),
    ):
        how = reading(fields=fields, max_record_bytes=1000)
        items = read_file(file, how)
        whole = [{name: row[name] for name in read} for row in rows]
        assert values(items) == [row for row in whole if row not in [whole[i] for i in damaged]]
        assert [item[0] for item in damages(items)] == damaged
        (split,) = splits(file, how, split_bytes=file.bytes)
        seen = [*open_reader(split, how, whole=True)]
        assert values(seen) == [row for row in rows if row not in [rows[i] for i in damaged]]


def test_a_page_with_a_wrong_checksum_is_damage(tmp_path: Path) -> None:
    file = table(tmp_path / "a.parquet", write_page_checksum=True)
    raw = bytearray(Path(file.path).read_bytes())
    raw[raw.index("第4篇".encode()) + 2] ^= 1
    Path(file.path).write_bytes(raw)
    items = read_file(input_file(Path(file.path)), reading())
    assert damages(items) == [(row, 1, "bad-row-group") for row in (3, 4, 5)]


def test_an_error_of_the_disk_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group larger than what is held is read by pyarrow, which turns errors into its own."""
    monkeypatch.setattr("pipelines.readers.row_groups.HELD_BYTES", 10)
    file = table(tmp_path / "a.parquet")
    assert values(read_file(file, reading())) == ROWS
    (split,) = splits(file, reading(), split_bytes=file.bytes)
    with Path(file.path).open("rb") as handle:
        broken = _Broken(handle, after=file.bytes)
        with pytest.raises(OSError, match="the disk is gone"):
            list(ParquetReader(split, text_fields=("text",)).read(broken))  # type: ignore[arg-type]  # the part of a file that is used


class _Broken:
    """A file that fails when more was read than the checksum of all groups takes."""

    def __init__(self, handle: Any, *, after: int) -> None:
        self._handle = handle
        self._left = after // 2

    def seek(self, offset: int) -> int:
        return int(self._handle.seek(offset))

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise OSError("the disk is gone")
        return bytes(self._handle.read(size))


@given(
    groups=st.lists(st.lists(st.text(max_size=30), max_size=5), max_size=8),
    split_bytes=st.integers(1, 3000),
)
@settings(max_examples=40, deadline=None)
def test_splits_read_what_one_split_reads(
    groups: list[list[str]], split_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also where row groups have no rows, and say that they begin nowhere."""
    path = tmp_path_factory.mktemp("tables") / "a.parquet"
    schema = pa.schema([("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for texts in groups:
            writer.write_table(pa.table({"text": texts}, schema))
    file = input_file(path)
    items = read_in_splits(file, reading(), split_bytes=split_bytes)
    assert not any(groups) or items == read_file(file, reading())
    assert [value["text"] for value in values(items)] == list(itertools.chain(*groups))
