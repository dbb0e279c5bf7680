"""Records read again by their places."""

import bisect
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from pipelines.inputs.files import open_input
from pipelines.inputs.split import Split
from pipelines.readers.compressed import compression
from pipelines.readers.jsonl import object_line
from pipelines.readers.lines import text_line
from pipelines.readers.mend import mend_json, mend_row, mend_text
from pipelines.readers.parquet import ParquetReader
from pipelines.readers.reading import Format, Reading, format_of
from pipelines.readers.record import RAW_BYTES, Damage, Record
from pipelines.readers.row_groups import first_rows, open_table
from pipelines.readers.stream import ByteStream, PlainStream, UnpackedStream

Place = tuple[int, int]
"""Offset and length of a record: its identity in its file."""

_BLOCK_BYTES = 1 << 20


def read_places(
    path: str, places: Iterable[Place], reading: Reading, *, mend: bool = False
) -> Iterator[Record | Damage]:
    """Yield what stands at some places of a file, sorted by place; each one once.

    A compressed file is unpacked once, up to the last place. Of what no record can be made the
    reason may be another one than a reader gives, which knows what stands around it.

    Args:
        path: Path or URL of the file.
        places: The places.
        reading: How the file is read.
        mend: Where no record can be made, try once more with what is no UTF-8 replaced by U+FFFD.

    Raises:
        UserError: The file cannot be read.
        ValueError: Places in a compressed file overlap.
    """
    wanted = sorted(set(places))
    form = format_of(path, reading)
    with open_input(path) as handle:
        file_bytes = handle.seek(0, io.SEEK_END)
        whole = Split(
            source="",
            path=path,
            relative="",
            file_bytes=file_bytes,
            start=0,
            end=file_bytes,
            mtime_ns=0,
        )
        if form == "parquet":
            for item in _rows(handle, whole, wanted, reading):
                yield _mended_row(handle, whole, item) if mend else item
            return
        for at, length, raw in _stretches(handle, whole, wanted, reading.max_record_bytes):
            item = _item(at, length, raw, form=form, reading=reading)
            if mend and isinstance(item, Damage):
                valid = mend_text(raw) if form == "lines" else mend_json(raw)
                again = _item(at, len(valid), valid, form=form, reading=reading)
                item = item if isinstance(again, Damage) else again._replace(length=length, raw=raw)
            yield item


def _item(at: int, length: int, raw: bytes, *, form: Format, reading: Reading) -> Record | Damage:
    if length > reading.max_record_bytes:
        return Damage(at, length, "too-long", raw)
    if form == "lines":
        item = text_line(at, raw, None, newline=reading.newline)
    else:
        item = object_line(at, raw, None)
    return item or Damage(at, length, "truncated", raw[:RAW_BYTES])


def _rows(
    handle: BinaryIO, whole: Split, wanted: Sequence[Place], reading: Reading
) -> Iterator[Record | Damage]:
    rows = {at for at, _ in wanted}
    edges = first_rows(open_table(handle, whole.path).metadata)
    for start, end in itertools.pairwise(edges):
        if rows.isdisjoint(range(start, end)):
            continue
        group = ParquetReader(
            replace(whole, start=start, end=end),
            text_fields=reading.text_fields,
            max_record_bytes=reading.max_record_bytes,
        )
        yield from (item for item in group.read(handle) if item.offset in rows)


def _mended_row(handle: BinaryIO, whole: Split, item: Record | Damage) -> Record | Damage:
    """Return the record of a row whose texts are no UTF-8; what else it is, as it is."""
    if not isinstance(item, Damage) or item.reason != "bad-utf8":
        return item
    table = open_table(handle, whole.path)
    edges = first_rows(table.metadata)
    group = bisect.bisect_right(edges, item.offset) - 1
    row = table.read_row_group(group).slice(item.offset - edges[group], 1)
    try:
        (value,) = mend_row(row).to_pylist()
    except UnicodeDecodeError:  # in a list or a struct
        return item
    return Record(item.offset, item.length, value, b"")


def _stretches(
    handle: BinaryIO, whole: Split, wanted: Sequence[Place], max_bytes: int
) -> Iterator[tuple[int, int, bytes]]:
    """Yield each place with its bytes, of what is longer than a record the first ones."""
    kind = compression(whole.path)
    stream: ByteStream
    handle.seek(0)
    if kind:
        stream = UnpackedStream(handle, whole.path, file_bytes=whole.file_bytes, kind=kind)
    for at, length in wanted:
        if not kind:
            stream = PlainStream(handle, whole, at=min(at, whole.file_bytes))
        if stream.at > at:
            raise ValueError(f"{whole.path}: what is at {at} overlaps with what is before it")
        while stream.at < at and stream.read(min(_BLOCK_BYTES, at - stream.at)):
            pass
        yield at, length, stream.read(length if length <= max_bytes else min(length, RAW_BYTES))
