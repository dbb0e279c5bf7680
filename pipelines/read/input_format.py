"""How the files of a corpus are read: their format, where they are cut, and what reads a split."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from pipelines.read.arrow import ArrowReader
from pipelines.read.compressed import compression
from pipelines.read.custom import CustomReader, Read
from pipelines.read.files import InputFile, open_input, readable
from pipelines.read.json_array import JsonArrayReader
from pipelines.read.jsonl import object_line
from pipelines.read.lines import LineReader, Parse, text_line
from pipelines.read.parquet import ParquetReader, rows_crc32c
from pipelines.read.peek import Known, Peek
from pipelines.read.reader import RecordReader
from pipelines.read.record import MAX_RECORD_BYTES
from pipelines.read.repair import REJECT, REPLACE, Repair
from pipelines.read.row_groups import open_parquet, runs
from pipelines.read.rows import TableRows
from pipelines.read.split import FileSplit, open_split, split_file
from pipelines.read.whole import WholeReader, text_file
from shards.storage.files import crc32c_of

NEVER_CUT = frozenset(("custom", "json", "objects", "file", "arrow"))
"""Formats of which a file is one split: only the records before one show where it begins."""
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

    def peek(self, path: str) -> Peek:
        """Return the beginning of a file, and what it should be."""
        return Peek(path, "custom" if self.read else self.format, self.text_fields)


def splits(file: InputFile, reading: InputFormat, *, split_bytes: int) -> list[FileSplit]:
    """Return the splits of a file, in order and without gaps: this says where a file is cut.

    Lines are cut anywhere. The splits of a Parquet file are runs of row groups; their start and end
    are row numbers. A compressed file is one split, and so is one of a format of NEVER_CUT.

    Raises:
        ValueError: `split_bytes` is below 1.
        UserError: The file cannot be opened, or is not in its format.
    """
    form = reading.peek(file.path).format
    if form == "parquet":
        (whole,) = split_file(file, file.bytes, form=form)
        with open_input(file.path) as handle, readable(file.path):
            metadata = open_parquet(handle, file.path).metadata
        cuts = runs(metadata, file_bytes=file.bytes, split_bytes=split_bytes)
        return [replace(whole, start=start, end=end) for start, end in cuts]
    is_cut = form not in NEVER_CUT and compression(file.path) is None
    return split_file(file, split_bytes if is_cut else max(1, file.bytes), form=form)


def is_whole_array(path: str, reading: InputFormat) -> bool:
    """Return whether a file is one split because it is a JSON array, whatever its size."""
    return compression(path) is None and reading.peek(path).format == "json"


def open_reader(split: FileSplit, reading: InputFormat, *, whole: bool = False) -> RecordReader:
    """Return the reader of a split made by `splits`.

    Args:
        split: The split.
        reading: How its file is read.
        whole: Read all columns of a table, though the corpus may not look at them.
    """
    line = partial(text_line, newline=reading.newline)
    parses: dict[str, Parse] = {"file": text_file, "lines": line}
    parse = parses.get(split.form, object_line)
    reader = _open_reader(split, reading, parse, whole=whole)
    if (reading.bad_utf8, reading.nul) != (REJECT, REJECT):
        reader.repair = Repair(parse, bad_utf8=reading.bad_utf8, nul=reading.nul)
    return reader


def _open_reader(
    split: FileSplit, reading: InputFormat, parse: Parse, *, whole: bool
) -> RecordReader:
    most = reading.max_record_bytes
    if reading.read:
        return CustomReader(split, reading.read, max_record_bytes=most)
    if split.form == "file":
        return WholeReader(split, max_record_bytes=most)
    if split.form in ("parquet", "arrow"):
        rows = TableRows(
            text_fields=reading.text_fields,
            fields=reading.fields,
            whole=whole,
            max_record_bytes=most,
            errors="replace" if reading.bad_utf8 == REPLACE else "strict",
        )
        return (ParquetReader if split.form == "parquet" else ArrowReader)(split, rows)
    if split.form in ("json", "objects"):
        bare = split.form == "objects"
        fields = reading.text_fields
        return JsonArrayReader(split, text_fields=fields, bare=bare, max_record_bytes=most)
    return LineReader(split, parse, max_record_bytes=most)


def stored_crc32c(split: FileSplit) -> int:
    """Return the checksum that the split's reader would have at its end, without decoding."""
    if split.form == "parquet":
        return rows_crc32c(split)
    value, left = 0, split.end - split.start
    with open_split(split) as handle, readable(split.path):
        handle.seek(split.start)
        while left and (block := handle.read(min(left, _BLOCK_BYTES))):
            value = crc32c_of(block, value)
            left -= len(block)
    return value
