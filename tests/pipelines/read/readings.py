"""Reads files as a whole and in splits, and checks that certain invariants hold."""

import itertools
from pathlib import Path
from typing import Any

import google_crc32c

from pipelines.read.files import InputFile, match_inputs
from pipelines.read.formats import open_reader, splits, stored_crc32c
from pipelines.read.input_format import InputFormat
from pipelines.read.reader import RecordReader
from pipelines.read.record import Damage, Record
from pipelines.read.split import FileSplit

Items = list[Record | Damage]


def input_format(form: Any = "auto", **options: Any) -> InputFormat:
    return InputFormat(format=form, text_fields=("text",), **options)


def input_file(path: Path) -> InputFile:
    (file,) = match_inputs([str(path)], pattern="*", default_name="s")
    return file


def written(path: Path, raw: bytes) -> InputFile:
    path.write_bytes(raw)
    return input_file(path)


def read_split(split: FileSplit, how: InputFormat) -> Items:
    reader: RecordReader = open_reader(split, how)
    items = list(reader)
    assert reader.crc32c == stored_crc32c(split)
    return items


def read_file(file: InputFile, how: InputFormat) -> Items:
    """Read a file as one split, check the file's checksum, and return the items."""
    (split,) = splits(file, how, split_bytes=max(1, file.bytes))
    items = read_split(split, how)
    assert stored_crc32c(split) == google_crc32c.value(Path(file.path).read_bytes())
    return items


def read_in_splits(file: InputFile, how: InputFormat, *, split_bytes: int) -> Items:
    """Read a file split by split, and return the items."""
    cut = splits(file, how, split_bytes=split_bytes)
    return list(itertools.chain.from_iterable(read_split(split, how) for split in cut))


def values(items: Items) -> list[Any]:
    return [item.value for item in items if isinstance(item, Record)]


def damages(items: Items) -> list[tuple[int, int, str]]:
    return [item[:3] for item in items if isinstance(item, Damage)]
