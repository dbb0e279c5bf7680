"""How the files of a corpus are read: their format, their splits, and the reader of a split.

The ending of a name says how a file is compressed (.gz, .zst, .bz2, .xz), and the part before that
says what is inside (.jsonl, .jsonlines, .ndjson, .txt, .parquet), in upper or lower case. For a
file named .json, or anything else, its first bytes decide: an array of objects, or an object on
each line. A corpus may bring a format of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from pipelines.read.arrow import ArrowReader, arrow_columns
from pipelines.read.compressed import SUFFIXES, compression
from pipelines.read.custom import CustomReader, Read
from pipelines.read.endings import FROM_TABLES
from pipelines.read.file_head import BOM, excerpt, read_head
from pipelines.read.files import InputFile, open_input, readable
from pipelines.read.json_array import JsonArrayReader, check_array, check_bare
from pipelines.read.json_scan import array_start, spans_lines
from pipelines.read.jsonl import check_objects, object_line
from pipelines.read.lines import LineReader, Parse, check_lines, text_line
from pipelines.read.mending import REJECT, REPLACE, MendingReader
from pipelines.read.parquet import ParquetReader, check_columns, rows_crc32c
from pipelines.read.record import MAX_RECORD_BYTES, RecordReader
from pipelines.read.row_groups import open_parquet, runs
from pipelines.read.split import FileSplit, open_split, split_file
from pipelines.read.whole import WholeReader, text_file
from shards.errors import UserError
from shards.storage.files import crc32c_of

Known = Literal["json", "jsonl", "objects", "lines", "file", "parquet", "arrow"]
"""An array of objects; objects, on a line each or over several; texts, on a line each or a file;
tables."""
Format = Known | Literal["own"]
"""One of these, or what a corpus's own function reads."""

_ENDINGS: dict[str, Known] = {
    ".jsonl": "jsonl",
    ".jsonlines": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "lines",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
NEVER_CUT = frozenset(("own", "json", "objects", "file", "arrow"))
"""Formats of which a file is one split."""
_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class InputFormat:
    """How to read the files of a corpus."""

    format: Known | Literal["auto"] = "auto"
    """The format of all files; "auto" decides for each file."""
    text_fields: tuple[str, ...] = ()
    """Fields that hold text: they distinguish a record of an array from an object nested in one,
    and a table needs one of them."""
    fields: tuple[str, ...] | None = None
    """All fields that the corpus looks at, with dots for a field in a field; None: it may look at
    any. Of a table no other columns are read."""
    read: Read | None = None
    """What reads the files of a format that is none of these: a function of a module, from a binary
    stream to records."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """A longer record is damage."""
    bad_utf8: str = REJECT
    """REJECT, or REPLACE: invalid bytes and lone surrogates become U+FFFD."""
    nul: str = REJECT
    """REJECT, or REMOVE: NUL characters are taken out of all strings."""
    newline: str = ""
    """What stands for a line feed in a text of the format "lines", for example "<n>"."""

    def __post_init__(self) -> None:
        if self.format not in ("auto", *get_args(Known)):
            raise ValueError(f"format must be auto or one of {get_args(Known)}: {self.format!r}")
        if self.read and self.format != "auto":
            raise ValueError(f"a reading with a function has no format: {self.format!r}")
        if self.max_record_bytes < 1:
            raise ValueError(f"max_record_bytes must be at least 1, not {self.max_record_bytes}")


def format_of(path: str, reading: InputFormat) -> Format:
    """Return the format of a file.

    Raises:
        UserError: Neither its name nor its first bytes show the format.
    """
    if reading.read:
        return "own"
    if reading.format != "auto":
        return reading.format
    name = path.lower()
    name = name.removesuffix(next((suffix for suffix in SUFFIXES if name.endswith(suffix)), ""))
    for ending, form in _ENDINGS.items():
        if name.endswith(ending):
            return form
    return _format_inside(path, read_head(path), reading.text_fields)


def is_whole_array(path: str, reading: InputFormat) -> bool:
    """Return whether a file is one split because it is a JSON array, whatever its size."""
    return compression(path) is None and format_of(path, reading) == "json"


def splits(file: InputFile, reading: InputFormat, *, split_bytes: int) -> list[FileSplit]:
    """Return the splits of a file, in order and without gaps.

    The splits of a table are runs of row groups; their start and end are row numbers. Lines are cut
    anywhere. A compressed file is one split, and so is one of a format of NEVER_CUT: where its
    records begin is only known to who reads it from its start.

    Raises:
        ValueError: `split_bytes` is below 1.
        UserError: The file cannot be opened, or is not in its format.
    """
    form = format_of(file.path, reading)
    if form in NEVER_CUT:
        return split_file(file, max(1, file.bytes))
    if form == "parquet":
        (whole,) = split_file(file, file.bytes)
        with open_input(file.path) as handle, readable(file.path):
            metadata = open_parquet(handle, file.path).metadata
        cuts = runs(metadata, file_bytes=file.bytes, split_bytes=split_bytes)
        return [replace(whole, start=start, end=end) for start, end in cuts]
    return split_file(file, file.bytes if compression(file.path) else split_bytes)


def open_reader(split: FileSplit, reading: InputFormat, *, whole: bool = False) -> RecordReader:
    """Return the reader of a split made by `splits`.

    Args:
        split: The split.
        reading: How its file is read.
        whole: Read all columns of a table, though the corpus may not look at them.
    """
    reader = _open_reader(split, reading, whole=whole)
    if (reading.bad_utf8, reading.nul) == (REJECT, REJECT):
        return reader
    parse = _parse(format_of(split.path, reading), reading)
    return MendingReader(reader, parse, bad_utf8=reading.bad_utf8, nul=reading.nul)


def _parse(form: Format, reading: InputFormat) -> Parse:
    """Return what makes a record of the bytes of one."""
    if form == "file":
        return text_file
    return partial(text_line, newline=reading.newline) if form == "lines" else object_line


def _open_reader(split: FileSplit, reading: InputFormat, *, whole: bool) -> RecordReader:
    form, max_bytes = format_of(split.path, reading), reading.max_record_bytes
    if reading.read:
        return CustomReader(split, reading.read, max_record_bytes=max_bytes)
    if form == "file":
        return WholeReader(split, max_record_bytes=max_bytes)
    if form in ("parquet", "arrow"):
        kind = ParquetReader if form == "parquet" else ArrowReader
        return kind(
            split,
            text_fields=reading.text_fields,
            fields=reading.fields,
            whole=whole,
            max_record_bytes=max_bytes,
            errors="replace" if reading.bad_utf8 == REPLACE else "strict",
        )
    if form in ("json", "objects"):
        return JsonArrayReader(
            split,
            text_fields=reading.text_fields,
            bare=form == "objects",
            max_record_bytes=max_bytes,
        )
    return LineReader(split, _parse(form, reading), max_record_bytes=max_bytes)


def check_head(file: InputFile, reading: InputFormat) -> None:
    """Check that a file is not obviously something other than its format.

    Raises:
        UserError: It is; the message says what it is and what was expected.
    """
    form = format_of(file.path, reading)
    if form == "own":  # whose reader finds out
        return
    if form == "parquet":
        _check_table(file, reading)
        return
    if form == "arrow":
        check_columns(arrow_columns(file.path), file.path, text_fields=reading.text_fields)
        return
    head = read_head(file.path)
    if not head:  # an empty archive, or one broken from its start, which counts as damage
        return
    check: Mapping[Format, Callable[[bytes, str], None]] = {
        "json": partial(check_array, text_fields=reading.text_fields),
        "jsonl": check_objects,
        "objects": check_bare,
        "lines": check_lines,
        "file": check_lines,
    }
    check[form](head, file.path)


def stored_crc32c(split: FileSplit, reading: InputFormat) -> int:
    """Return the checksum that the split's reader would have at its end, without decoding."""
    if format_of(split.path, reading) == "parquet":
        return rows_crc32c(split)
    value, left = 0, split.end - split.start
    with open_split(split) as handle, readable(split.path):
        handle.seek(split.start)
        while left and (block := handle.read(min(left, _BLOCK_BYTES))):
            value = crc32c_of(block, value)
            left -= len(block)
    return value


def _check_table(file: InputFile, reading: InputFormat) -> None:
    codec = compression(file.path)
    if codec:
        raise UserError(
            f"The input {file.path} is a {codec} archive of a Parquet file, whose row groups "
            "cannot be found in it; unpack it first."
        )
    with open_input(file.path) as handle, readable(file.path):
        table = open_parquet(handle, file.path)
        check_columns(table.schema_arrow.names, file.path, text_fields=reading.text_fields)


def _format_inside(path: str, head: bytes, text_fields: Sequence[str]) -> Known:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "arrow"
    text = head.removeprefix(BOM).lstrip()
    if text.startswith(b"[") or array_start(head, text_fields) is not None:
        return "json"
    if text.startswith(b"{"):
        return "objects" if spans_lines(head) else "jsonl"
    if not text or ".json" in path.lower():
        return "json"
    raise UserError(
        f"Neither the name nor the first bytes of the input {path} show its format: it begins with "
        f"{excerpt(head)}. Give its name the right ending: .json, .jsonl, .txt or .parquet."
        f"{f' {FROM_TABLES}' if path.lower().endswith(('.csv', '.tsv')) else ''}"
    )
