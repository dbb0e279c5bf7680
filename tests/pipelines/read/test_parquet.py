import dataclasses
import itertools
import tracemalloc
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.read.files import InputFile
from pipelines.read.formats import open_reader, splits
from pipelines.read.record import Damage
from pipelines.read.value import as_text
from shards.errors import UserError
from tests.pipelines.read.readings import (
    damages,
    input_file,
    input_format,
    read_file,
    read_in_splits,
    values,
)

ROWS = [{"text": f"第{index}篇 " + chr(97 + index % 26) * 60} for index in range(20)]


def table(path: Path, rows: Any = None, *, group: int = 3, **options: Any) -> InputFile:
    content = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows or ROWS)
    options = {"compression": "none", "use_dictionary": False, **options}
    pq.write_table(content, path, row_group_size=group, **options)
    return input_file(path)


def test_values_that_are_too_long_are_not_converted(tmp_path: Path) -> None:
    """A long value in any column makes the row count as damage, and is not copied to Python."""
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
        (split,) = splits(file, input_format(), split_bytes=file.bytes)
        tracemalloc.start()
        try:
            items = list(open_reader(split, input_format(max_record_bytes=1 << 20)))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 8 << 20
        assert [value["text"] for value in values(items)] == ["a", "c"]
        assert damages(items) == [(1, 1, "too-long"), (2, 1, "too-long")]
        assert [item.offset for item in items] == [0, 1, 2, 3]
        assert [len(item.raw) for item in items if isinstance(item, Damage)] == [64 << 10, 1]


def test_only_needed_columns_are_read(tmp_path: Path) -> None:
    """Columns that no field needs are read only if `all_columns` is set."""
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
        how = input_format(fields=fields, max_record_bytes=1000)
        items = read_file(file, how)
        whole = [{name: row[name] for name in read} for row in rows]
        assert values(items) == [row for row in whole if row not in [whole[i] for i in damaged]]
        assert [item[0] for item in damages(items)] == damaged
        assert [item.offset for item in items] == [0, 1]
        (split,) = splits(file, how, split_bytes=file.bytes)
        seen = [*open_reader(split, dataclasses.replace(how, all_columns=True))]
        assert values(seen) == [row for row in rows if row not in [rows[i] for i in damaged]]


def test_a_page_with_a_wrong_checksum_is_damage(tmp_path: Path) -> None:
    file = table(tmp_path / "a.parquet", write_page_checksum=True)
    raw = bytearray(Path(file.path).read_bytes())
    raw[raw.index("第4篇".encode()) + 2] ^= 1
    Path(file.path).write_bytes(raw)
    items = read_file(input_file(Path(file.path)), input_format())
    assert damages(items) == [(row, 1, "bad-row-group") for row in (3, 4, 5)]
    group = pq.read_metadata(file.path).row_group(1)
    lost = [item.size for item in items if isinstance(item, Damage)]
    assert lost == [1 + group.total_byte_size // group.num_rows] * 3
    assert [item.offset for item in items] == [*range(20)]


def test_an_error_of_the_disk_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyarrow itself reads a row group larger than HELD_BYTES, and replaces errors by its own."""
    monkeypatch.setattr("pipelines.read.row_groups.HELD_BYTES", 10)
    file = table(tmp_path / "a.parquet")
    assert values(read_file(file, input_format())) == ROWS
    (split,) = splits(file, input_format(), split_bytes=file.bytes)
    with Path(file.path).open("rb") as handle:
        broken = nullcontext(_Broken(handle, after=file.bytes))
        monkeypatch.setattr("pipelines.read.parquet.open_split", lambda _: broken)
        with pytest.raises(UserError, match="the disk is gone"):
            list(open_reader(split, input_format()))


class _Broken:
    """A file that fails after as many bytes as computing the checksum reads."""

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
    """The files include row groups that have no rows, and therefore no offset."""
    path = tmp_path_factory.mktemp("tables") / "a.parquet"
    schema = pa.schema([("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for texts in groups:
            writer.write_table(pa.table({"text": texts}, schema))
    file = input_file(path)
    items = read_in_splits(file, input_format(), split_bytes=split_bytes)
    assert not any(groups) or items == read_file(file, input_format())
    assert [value["text"] for value in values(items)] == list(itertools.chain(*groups))


_LOGICAL: dict[str, tuple[pa.Array, str]] = {
    "a UUID": (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(15) + b"\1"], pa.binary(16))),
        "00000000-0000-0000-0000-000000000001",
    ),
    "a decimal": (pa.array(["12.50"]).cast(pa.decimal128(9, 2)), "12.50"),
    "a large decimal": (pa.array(["-0.30"]).cast(pa.decimal256(50, 2)), "-0.30"),
    "nanoseconds": (pa.array([1], pa.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
    "whole seconds": (pa.array([10**6], pa.timestamp("us")), "1970-01-01 00:00:01"),
    "a zone": (pa.array([1], pa.timestamp("s", "Asia/Shanghai")), "1970-01-01 08:00:01+0800"),
    "whole seconds in UTC": (pa.array([0], pa.timestamp("ms", "UTC")), "1970-01-01 00:00:00Z"),
    "after the year 9999": (pa.array([2**39], pa.timestamp("s")), "19391-01-25 12:18:08"),
    "a date": (pa.array([1], pa.date32()), "1970-01-02"),
    "a time": (pa.array([10**9], pa.time64("ns")), "00:00:01"),
    "a duration": (pa.array([10**9 + 5], pa.duration("ns")), "0:00:01.000000005"),
    "days": (pa.array([-(10**6)], pa.duration("s")), "-277:46:40"),
    "a dictionary": (pa.array(["x"]).dictionary_encode(), "x"),
    "a dictionary of bytes": (pa.array([b"x"]).dictionary_encode(), "x"),
    "bytes": (pa.array([b"caf\xc3\xa9"]), "café"),
    "large bytes": (pa.array([b"x"], pa.large_binary()), "x"),
    "a hash": (pa.array([b"\0" * 20], pa.binary(20)), "00" * 20),
    "no number": (pa.array([float("nan")]), ""),
    "a large integer": (pa.array([2**64 - 1], pa.uint64()), "18446744073709551615"),
    "null": (pa.array([None], pa.string()), ""),
    "a list": (pa.array([["a", "b"]], pa.large_list(pa.string())), '["a","b"]'),
    "a list of bytes": (pa.array([[b"a", b"\xff"]]), '["a","ff"]'),
    "an object": (pa.array([{"b": b"x", "a": 1}]), '{"a":1,"b":"x"}'),
    "a map": (pa.array([[("b", 1)]], pa.map_(pa.string(), pa.int8())), '{"b":1}'),
    "a date in a list": (pa.array([[1]], pa.list_(pa.date32())), '["1970-01-02"]'),
    "of no year in Python": (pa.array([[2**39]], pa.list_(pa.timestamp("s"))), ""),
}
"""By name: values of a Parquet type, and the text of each value."""


@pytest.mark.parametrize("name", _LOGICAL)
def test_every_logical_type_becomes_readable_text(name: str, tmp_path: Path) -> None:
    column, text = _LOGICAL[name]
    content = pa.table({"text": ["words"], "value": column})
    file = table(tmp_path / "a.parquet", content)
    (value,) = values(read_file(file, input_format()))
    assert as_text(value["value"]) == text
