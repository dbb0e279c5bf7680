"""Reads records again, by their places; what is invalid in their UTF-8 may become U+FFFD."""

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from pipelines.inputs.files import open_input
from pipelines.inputs.split import Split
from pipelines.readers.jsonl import object_line
from pipelines.readers.lines import text_line
from pipelines.readers.own import OwnReader
from pipelines.readers.parquet import NO_VALUE, ParquetReader
from pipelines.readers.reading import Format, Reading, format_of
from pipelines.readers.record import RAW_BYTES, Damage, Record
from pipelines.readers.row_groups import first_rows, open_parquet
from pipelines.readers.salvage import Partial
from pipelines.readers.stream import PlainStream, stream_of, whole_file

Place = tuple[int, int]
"""Offset and length of a record: its identity in its file."""

_BLOCK_BYTES = 1 << 20
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in JSON: a pair of surrogates, a lone one, or another."""


def read_places(
    path: str, places: Iterable[Place], reading: Reading, *, mend: bool = False
) -> Iterator[Record | Damage]:
    """Yield what stands at some places of a file, sorted by place; each place once.

    A compressed file is unpacked once, up to the last place. The reason of damage may differ from
    the one its first reader gave, which saw what stands around it.

    Args:
        path: Path or URL of the file.
        places: The places.
        reading: How the file is read.
        mend: If there is no record at a place, try once more with invalid UTF-8 as U+FFFD.

    Raises:
        UserError: The file cannot be read.
        ValueError: Places in a compressed file overlap.
    """
    wanted = sorted(set(places))
    form = format_of(path, reading)
    with open_input(path) as handle:
        whole = whole_file(handle, path)
        if reading.read:
            yield from _own(handle, whole, {*wanted}, reading)
            return
        if form == "parquet":
            for item in _rows(handle, whole, wanted, reading):
                yield _mended_row(handle, whole, item) if mend else item
            return
        for offset, length, raw in _read_bytes(handle, whole, wanted, reading.max_record_bytes):
            item = _item(offset, length, raw, form=form, reading=reading)
            if mend and _is_lacking(item):
                valid = mend_text(raw) if form == "lines" else mend_json(raw)
                mended = _item(offset, len(valid), valid, form=form, reading=reading)
                if isinstance(mended, Record):
                    item = mended._replace(length=length, raw=raw)
            yield item


def _item(
    offset: int, length: int, raw: bytes, *, form: Format, reading: Reading
) -> Record | Damage:
    if length > reading.max_record_bytes:
        return Damage(offset, length, "too-long", raw)
    if form == "lines":
        item = text_line(offset, raw, None, newline=reading.newline)
    else:
        item = object_line(offset, raw, None)
    if item is None:
        return Damage(offset, length, "truncated", raw[:RAW_BYTES])
    return item._replace(offset=offset, length=length)  # a byte order mark before it included


def _is_lacking(item: Record | Damage) -> bool:
    return isinstance(item, Damage) or isinstance(item.value, Partial)


def _rows(
    handle: BinaryIO, whole: Split, wanted: Sequence[Place], reading: Reading
) -> Iterator[Record | Damage]:
    rows = {row for row, _ in wanted}
    edges = first_rows(open_parquet(handle, whole.path).metadata)
    for start, end in itertools.pairwise(edges):
        if rows.isdisjoint(range(start, end)):
            continue
        group = ParquetReader(
            replace(whole, start=start, end=end),
            text_fields=reading.text_fields,
            max_record_bytes=reading.max_record_bytes,
        )
        yield from (item for item in group.read(handle) if item.offset in rows)


def _own(
    handle: BinaryIO, whole: Split, wanted: Set[Place], reading: Reading
) -> Iterator[Record | Damage]:
    """Yield the records at some places of a file in its corpus's own format."""
    assert reading.read is not None
    records = OwnReader(whole, reading.read, max_record_bytes=reading.max_record_bytes).read(
        stream_of(handle, whole)
    )
    yield from (item for item in records if (item.offset, item.length) in wanted)


def _mended_row(handle: BinaryIO, whole: Split, item: Record | Damage) -> Record | Damage:
    """Return the record of a row whose texts are not UTF-8, anything else as it is."""
    reason = item.reason if isinstance(item, Damage) else getattr(item.value, "reason", None)
    if reason != "bad-utf8":
        return item
    table = open_parquet(handle, whole.path)
    edges = first_rows(table.metadata)
    group = bisect.bisect_right(edges, item.offset) - 1
    row = table.read_row_group(group).slice(item.offset - edges[group], 1)
    try:
        (value,) = mend_row(row).to_pylist()
    except NO_VALUE:  # in a list or a struct, or of another column
        return item
    return Record(item.offset, item.length, value, b"")


def _read_bytes(
    handle: BinaryIO, whole: Split, wanted: Sequence[Place], max_bytes: int
) -> Iterator[tuple[int, int, bytes]]:
    """Yield each place with its bytes, or with its first ones if it exceeds `max_bytes`."""
    stream = stream_of(handle, whole)
    for offset, length in wanted:
        if isinstance(stream, PlainStream):
            stream = PlainStream(handle, whole, offset=min(offset, whole.file_bytes))
        if stream.offset > offset:
            raise ValueError(f"{whole.path}: the place at {offset} overlaps with the one before it")
        while stream.offset < offset and stream.read(min(_BLOCK_BYTES, offset - stream.offset)):
            pass
        yield offset, length, stream.read(length if length <= max_bytes else min(length, RAW_BYTES))


def mend_text(raw: bytes) -> bytes:
    """Return the bytes with invalid sequences replaced as WHATWG's decoder replaces them."""
    return raw.decode("utf-8", "replace").encode()


def mend_json(raw: bytes) -> bytes:
    r"""Return the bytes of JSON mended as text, and its lone surrogates (\ud800) replaced too."""
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], mend_text(raw))


def mend_row(row: pa.RecordBatch | pa.Table) -> pa.Table:
    """Return rows with their columns of strings mended; strings inside lists stay as they are."""
    columns = [
        pa.array([_mended(value) for value in column.cast(_binary(column.type)).to_pylist()])
        if _is_string(column.type)
        else column
        for column in row.columns
    ]
    return pa.table(columns, names=row.schema.names)


def _mended(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _is_string(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _binary(data_type: pa.DataType) -> pa.DataType:
    return pa.binary() if pa.types.is_string(data_type) else pa.large_binary()
