"""Files that are written, truncated or replaced while they are read."""

import bz2
import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.read.formats import open_reader, splits
from pipelines.read.record import Record
from shards.errors import UserError
from tests.pipelines.read.readings import input_file, input_format, values

pytestmark = pytest.mark.slow

COUNT = 30_000
RECORDS = [{"text": f"{index:07} {index * 2654435761 % 2**32:032b}"} for index in range(COUNT)]


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(RECORDS), sink, row_group_size=COUNT // 4)
    return sink.getvalue()


def _lines() -> bytes:
    return b"".join(orjson.dumps(record) + b"\n" for record in RECORDS)


FILES: dict[str, Callable[[], bytes]] = {
    "a.jsonl": _lines,
    "a.txt": lambda: b"".join(record["text"].encode() + b"\n" for record in RECORDS),
    "a.json": lambda: orjson.dumps(RECORDS),
    "a.parquet": _parquet,
    "a.jsonl.gz": lambda: gzip.compress(_lines(), 1),
    "a.jsonl.zst": lambda: zstandard.compress(_lines(), 1),
    "a.jsonl.bz2": lambda: bz2.compress(_lines(), 1),
    "a.json.gz": lambda: gzip.compress(orjson.dumps(RECORDS), 1),
}


def _append(path: Path) -> None:
    with path.open("ab") as handle:
        handle.write(b"x")


def _write_again(path: Path) -> None:
    raw = path.read_bytes()
    with path.open("r+b") as handle:
        handle.write(raw[: len(raw) // 2] + raw[len(raw) // 2 :][::-1])


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _replace(path: Path) -> None:
    new = path.with_name("new")
    new.write_bytes(b"something else")
    new.replace(path)


@pytest.mark.parametrize("change", [_append, _write_again, _cut, _empty, _replace, Path.unlink])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_changes_while_it_is_read(
    name: str, change: Callable[[Path], None], tmp_path: Path
) -> None:
    """The reader still reads a replaced file to its end; any other change is an error."""
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    os.utime(path, ns=(1, 1))
    file = input_file(path)
    (split,) = splits(file, input_format(), split_bytes=file.bytes)
    items = iter(open_reader(split, input_format()))
    read = [next(items) for _ in range(10)]
    change(path)
    if change in (_replace, Path.unlink):
        assert values([*read, *items]) == RECORDS
        return
    with pytest.raises(UserError, match=r"(still being written|changed while it was read)\. ?Run"):
        read.extend(items)
    kept = [item.value for item in read if isinstance(item, Record)]
    assert kept[:10] == RECORDS[:10]
