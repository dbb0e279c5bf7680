"""Chooses the reader for each format, and cuts files into splits."""

from collections.abc import Mapping
from dataclasses import replace

from pipelines.read.arrow import ArrowReader
from pipelines.read.compressed import compression
from pipelines.read.custom import CustomReader
from pipelines.read.files import InputFile, open_input, readable
from pipelines.read.input_format import InputFormat
from pipelines.read.json_array import JsonArrayReader
from pipelines.read.lines import JsonLinesReader, TextFileReader, TextLinesReader
from pipelines.read.parquet import ParquetReader, rows_crc32c
from pipelines.read.peek import Peek
from pipelines.read.reader import RecordReader
from pipelines.read.row_groups import open_parquet, row_ranges
from pipelines.read.split import FileSplit, open_split, split_file
from shards.storage.files import crc32c_of

READERS: Mapping[str, type[RecordReader]] = {
    "json": JsonArrayReader,
    "objects": JsonArrayReader,
    "jsonl": JsonLinesReader,
    "lines": TextLinesReader,
    "file": TextFileReader,
    "parquet": ParquetReader,
    "arrow": ArrowReader,
    "custom": CustomReader,
}
NEVER_CUT = frozenset(("custom", "json", "objects", "file", "arrow"))
"""Formats whose files are never cut: a record's position is known only after the records before
it."""
_BLOCK_BYTES = 4 << 20


def splits(file: InputFile, input_format: InputFormat, *, split_bytes: int) -> list[FileSplit]:
    """Return the splits of a file, in order and without gaps.

    Files of lines are cut anywhere. The splits of a Parquet file are runs of row groups; their
    start and end are row numbers. A compressed file is one split, and so is a file whose format is
    in NEVER_CUT.

    Raises:
        ValueError: `split_bytes` is below 1.
        UserError: The file cannot be opened, or is not in its format.
    """
    form = Peek(file.path, input_format).format
    if form == "parquet":
        (whole,) = split_file(file, file.bytes, form=form)
        with open_input(file.path) as handle, readable(file.path):
            metadata = open_parquet(handle, file.path).metadata
        cuts = row_ranges(metadata, file_bytes=file.bytes, split_bytes=split_bytes)
        return [replace(whole, start=start, end=end) for start, end in cuts]
    is_cut = form not in NEVER_CUT and compression(file.path) is None
    return split_file(file, split_bytes if is_cut else max(1, file.bytes), form=form)


def is_whole_array(path: str, input_format: InputFormat) -> bool:
    """Return whether a file is an uncompressed JSON array, which is one split whatever its size."""
    return compression(path) is None and Peek(path, input_format).format == "json"


def open_reader(split: FileSplit, input_format: InputFormat) -> RecordReader:
    """Return a reader for a split made by `splits`."""
    return READERS[split.form](split, input_format)


def stored_crc32c(split: FileSplit) -> int:
    """Return the checksum that a split's reader would compute, but do not decode any records."""
    if split.form == "parquet":
        return rows_crc32c(split)
    value, left = 0, split.end - split.start
    with open_split(split) as handle, readable(split.path):
        handle.seek(split.start)
        while left and (block := handle.read(min(left, _BLOCK_BYTES))):
            value = crc32c_of(block, value)
            left -= len(block)
    return value
