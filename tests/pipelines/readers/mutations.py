"""Files of every format, damaged at random, read to their end."""

import bz2
import datetime
import gzip
import io
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from pipelines.corpus.sources import Corpus
from pipelines.fineweb import FinewebOptions
from pipelines.inputs.files import match_inputs
from pipelines.map.intake import Intake
from pipelines.readers.reading import Reading, check_head, open_reader, splits
from pipelines.readers.record import Damage, Record
from pipelines.readers.salvage import Partial
from shards.errors import UserError

RECORDS = [
    {
        "text": f"第{index}篇 " + "一二三" * (index % 7) + "x" * index,
        "url": f"http://{index}",
        "score": index / 7,
        "token_count": index,
        "meta": {"n": [index, None]},
    }
    for index in range(40)
]

_FINEWEB = Intake(Corpus("pipelines.fineweb", FinewebOptions()))
"""It asks for every field."""


def _lines() -> bytes:
    return b"".join(orjson.dumps(record) + b"\n" for record in RECORDS)


def _table() -> pa.Table:
    table = pa.Table.from_pylist(RECORDS)
    count = len(RECORDS)
    times = pa.array([datetime.datetime(2020, 1, 1)] * count, pa.timestamp("us", "Asia/Shanghai"))
    labels = pa.array([f"l{index % 3}" for index in range(count)]).dictionary_encode()
    return table.append_column("date", times).append_column("label", labels)


def _parquet(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(_table(), sink, row_group_size=15, **options)
    return sink.getvalue()


def _arrow(*, stream: bool) -> bytes:
    sink = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, _table().schema) as writer:
        writer.write_table(_table())
    return sink.getvalue()


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", _lines())
    return sink.getvalue()


@cache
def files() -> Mapping[str, bytes]:
    """The undamaged files, by name."""
    lines, array = _lines(), orjson.dumps(RECORDS)
    wrapped = b'{"a":{"b":[1]},"RECORDS":' + array + b',"more":' + array + b"}"
    checked = zstandard.ZstdCompressor(write_checksum=True)
    return {
        "plain.parquet": _parquet(compression="none", use_dictionary=False),
        "snappy.parquet": _parquet(compression="snappy", write_page_checksum=True),
        "zstd.parquet": _parquet(compression="zstd", data_page_version="2.0"),
        "bare.parquet": _parquet(compression="none", store_schema=False),
        "file.arrow": _arrow(stream=False),
        "stream.arrow": _arrow(stream=True),
        "a.zip": _zip(),
        "zipped.jsonl": _zip(),
        "a.jsonl": lines,
        "a.jsonl.gz": gzip.compress(lines, mtime=0),
        "members.jsonl.gz": gzip.compress(lines[:999], mtime=0) + gzip.compress(lines[999:]),
        "a.jsonl.bz2": bz2.compress(lines),
        "a.jsonl.zst": checked.compress(lines),
        "a.json": array,
        "wrapped.json": wrapped,
        "a.json.gz": gzip.compress(wrapped, mtime=0),
        "a.json.zst": checked.compress(array),
    }


CHECKED = (".gz", ".bz2", ".zst")
"""Formats that show any change of their content: none may pass in silence."""
COUNTED = (*CHECKED, ".parquet")
"""Formats that know how many records they have. Half a file of lines is a file of lines."""


def outcome(path: Path) -> str:
    """Read a file as a run does, and say what became of it; no error but a refusal is caught."""
    try:
        items = _read(path)
    except UserError as error:
        return f"refused {' '.join(str(error).split())}"
    if any(isinstance(item, Damage) or isinstance(item.value, Partial) for item in items):
        return f"damage {len(items)}"
    texts = [item.value.get("text") for item in items if isinstance(item, Record)]
    if texts == [record["text"] for record in RECORDS]:
        return "same"
    silent = len(texts) != len(RECORDS) and path.name.endswith(COUNTED)
    silent |= path.name.endswith(CHECKED)
    return f"{'SILENT' if silent else 'changed'} {len(texts)}"


def _read(path: Path) -> list[Record | Damage]:
    reading = Reading(text_fields=("text",))
    (file,) = match_inputs([str(path)], pattern="*", default_name="s")
    check_head(file, reading)
    items = []
    for split in splits(file, reading, split_bytes=10**9):
        part = list(open_reader(split, reading))
        _FINEWEB.read(part, split)
        _ = [item.head for item in part]
        items += part
    return items
