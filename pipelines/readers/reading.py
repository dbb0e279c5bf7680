"""How the files of a corpus are read: their format, the splits, the reader of each.

The ending of a name says how a file is compressed (.gz, .zst, .bz2), and what stands before it
what is inside (.jsonl, .ndjson, .txt, .parquet). A file named .json, or otherwise, is told by its
first bytes: an array of objects, or an object on each line.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from pipelines.inputs.files import InputFile, open_input, readable
from pipelines.inputs.split import Split, open_split, split_file
from pipelines.readers.compressed import SUFFIXES, compression
from pipelines.readers.json_array import JsonArrayReader
from pipelines.readers.json_frame import HEAD_BYTES, array_start, check_array, shown
from pipelines.readers.jsonl import check_objects, object_line
from pipelines.readers.lines import LineReader, check_lines, text_line
from pipelines.readers.parquet import ParquetReader, check_columns, rows_crc32c
from pipelines.readers.record import MAX_RECORD_BYTES, Reader
from pipelines.readers.row_groups import open_table, runs
from pipelines.readers.stream import read_head
from shards.errors import UserError
from shards.storage.files import crc32c_of

Format = Literal["json", "jsonl", "lines", "parquet"]
"""An array of objects, an object on each line, a text on each line, a table."""

_ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "lines",
    ".parquet": "parquet",
}
_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What has to be known to read the files of a corpus."""

    format: Format | Literal["auto"] = "auto"
    """The format of all files; "auto" looks at each one."""
    text_fields: tuple[str, ...]
    """Fields that hold text: they tell a record of an array from an object nested in one, and a
    table needs one of them."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """A longer record is damage."""
    newline: str = ""
    """What stands for a line feed in a text of the format "lines", for example "<n>"."""

    def __post_init__(self) -> None:
        if self.format not in ("auto", *get_args(Format)):
            raise ValueError(f"format must be auto or one of {get_args(Format)}: {self.format!r}")
        if self.max_record_bytes < 1:
            raise ValueError(f"max_record_bytes must be at least 1, not {self.max_record_bytes}")


def format_of(path: str, reading: Reading) -> Format:
    """Return the format of a file.

    Raises:
        UserError: It is to be told by the first bytes, and they do not tell.
    """
    if reading.format != "auto":
        return reading.format
    name = path.removesuffix(next((each for each in SUFFIXES if path.endswith(each)), ""))
    told = next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)
    return told or _format_inside(path, read_head(path, HEAD_BYTES))


def splits(file: InputFile, reading: Reading, *, split_bytes: int) -> list[Split]:
    """Return the splits of a file, in order and without gaps.

    Those of a table are runs of row groups, their start and end numbers of rows. A compressed file
    is one split.

    Raises:
        ValueError: `split_bytes` is below 1.
        UserError: The file cannot be opened, or is not of its format.
    """
    if format_of(file.path, reading) == "parquet":
        (whole,) = split_file(file, file.bytes)
        with open_input(file.path) as handle, readable(file.path):
            metadata = open_table(handle, file.path).metadata
        cuts = runs(metadata, file_bytes=file.bytes, split_bytes=split_bytes)
        return [replace(whole, start=start, end=end) for start, end in cuts]
    return split_file(file, file.bytes if compression(file.path) else split_bytes)


def open_reader(split: Split, reading: Reading) -> Reader:
    """Return a reader of a split that `splits` made."""
    form, max_bytes = format_of(split.path, reading), reading.max_record_bytes
    if form == "parquet":
        return ParquetReader(split, text_fields=reading.text_fields, max_record_bytes=max_bytes)
    if form == "json":
        return JsonArrayReader(split, text_fields=reading.text_fields, max_record_bytes=max_bytes)
    parse = object_line if form == "jsonl" else partial(text_line, newline=reading.newline)
    return LineReader(split, parse, max_record_bytes=max_bytes)


def check_head(file: InputFile, reading: Reading) -> None:
    """Check that a file is not plainly something else than its format says.

    Raises:
        UserError: It is; the message says what it is and what was expected.
    """
    form = format_of(file.path, reading)
    if form == "parquet":
        _check_table(file, reading)
        return
    head = read_head(file.path, HEAD_BYTES)
    if not head:  # an archive that is empty, or broken from its start: damage, if anything
        return
    check = {"json": check_array, "jsonl": check_objects, "lines": check_lines}[form]
    check(head, file.path)


def stored_crc32c(split: Split, reading: Reading) -> int:
    """Return the checksum that a reader of the split would have at its end, without decoding."""
    if format_of(split.path, reading) == "parquet":
        return rows_crc32c(split)
    value, left = 0, split.end - split.start
    with open_split(split) as handle, readable(split.path):
        handle.seek(split.start)
        while left and (block := handle.read(min(left, _BLOCK_BYTES))):
            value = crc32c_of(block, value)
            left -= len(block)
    return value


def _check_table(file: InputFile, reading: Reading) -> None:
    kind = compression(file.path)
    if kind:
        raise UserError(
            f"The input {file.path} is a {kind} archive of a Parquet file, whose parts cannot be "
            "found in it; unpack it first."
        )
    with open_input(file.path) as handle, readable(file.path):
        table = open_table(handle, file.path)
        check_columns(table, file.path, text_fields=reading.text_fields)


def _format_inside(path: str, head: bytes) -> Format:
    if head.startswith(b"PAR1"):
        return "parquet"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"[") or array_start(head) is not None:
        return "json"
    if text.startswith(b"{"):
        return "jsonl"
    if not text or ".json" in path:
        return "json"
    raise UserError(
        f"The input {path} is of no format that its name or its first bytes tell: it begins with "
        f"{shown(head)}. Give its name the ending of what it is: .json, .jsonl, .txt or .parquet."
    )
