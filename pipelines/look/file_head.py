"""Reads the first records of a file, or finds the reason why the file cannot be read."""

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipelines.read.bounded import BoundedReader
from pipelines.read.compressed import compression
from pipelines.read.encoding import other_encoding
from pipelines.read.files import InputFile
from pipelines.read.formats import open_reader, splits
from pipelines.read.input_format import InputFormat
from pipelines.read.peek import Peek, foreign_format
from pipelines.read.record import Damage, Record
from pipelines.read.shape import BY_COLUMNS
from pipelines.read.split import FileSplit
from pipelines.read.stream import open_stream
from pipelines.read.value import text_of
from shards.errors import UserError

HEAD_BYTES, HEAD_RECORDS, HEAD_SECONDS = 1 << 20, 2000, 1.0
"""The maximum number of decompressed bytes, of records, and of seconds for the inspection of a
file."""

PLACES_SHOWN = 3
"""The maximum number of damaged places of a file whose positions are shown."""

_INPUT_FORMAT = InputFormat()
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|body)\b", re.I | re.S)


@dataclass(frozen=True, kw_only=True)
class FileHead:
    """The findings about the beginning of a file."""

    file: InputFile
    form: str = ""
    """The format of the file, as in `Peek.format`; "" if it is unknown."""
    wrapped: bool = False
    """Whether the array of records is under a key of an object."""
    records: tuple[Record, ...] = ()
    damaged: int = 0
    """The number of damaged places."""
    places: tuple[tuple[str, str], ...] = ()
    """The first damaged places, such as "line 7", "row 3" or "byte 1200", each with the reason."""
    estimate: float = 0.0
    """The estimated number of records in the whole file."""
    refusal: str = ""
    """The reason, as a sentence, why nothing can be read; "" if something can."""
    hint: str = ""
    """Advice on the format, as the end of a sentence; "" if there is none."""
    conversion: str = ""
    """Advice on converting the file to UTF-8, as part of a message; "" if there is none."""


def inspect_file(file: InputFile) -> FileHead:
    """Return the findings about the beginning of a file, including any error in reading it.

    For a Parquet file, the footer and the beginning of the first row group are read.
    """
    peek, form = Peek(file.path, _INPUT_FORMAT), ""
    try:
        form = peek.format
        peek.check()
        if peek.is_by_columns:
            raise UserError(
                f"The input {file.path} is one object that contains many records. {BY_COLUMNS}."
            )
        return _head(file, peek)
    except UserError as error:
        head = b"" if form == "parquet" else _head_of(peek)
        refusal, hint = str(error), foreign(head)
        return FileHead(
            file=file,
            form=form,
            refusal=refusal,
            hint="" if hint in refusal else hint,
            conversion=_conversion(head, file.path),
        )


def foreign(head: bytes) -> str:
    """Return the format of a file that no reader reads, by its first bytes; "" if it is unknown."""
    if head.startswith(b"WARC/"):
        return "a WARC or WET archive of Common Crawl; docs/own.md shows a corpus that reads it"
    if head.startswith(b"<doc id="):
        return "text of WikiExtractor: run it with --json, so that its files can be read"
    if head.startswith(b"%PDF"):
        return "a PDF: extract its text first"
    if _HTML.match(head):
        return "a web page (HTML), perhaps an error page that was saved instead of the file"
    return foreign_format(head) or ""


def _head(file: InputFile, peek: Peek) -> FileHead:
    whole, *_ = splits(file, _INPUT_FORMAT, split_bytes=max(1, file.bytes))
    items, share = _first_items(whole)
    records = tuple(item for item in items if isinstance(item, Record))
    damaged = [item for item in items if isinstance(item, Damage)]
    return FileHead(
        file=file,
        form=peek.format,
        wrapped=peek.is_wrapped,
        records=records[:HEAD_RECORDS],
        damaged=len(damaged),
        places=tuple((_place(whole, item), item.reason) for item in damaged[:PLACES_SHOWN]),
        estimate=len(records) / share,
        hint=_hint(peek) if items or peek.format == "parquet" else "it holds no records",
        conversion=_conversion(
            next((item.raw for item in damaged if item.reason == "bad-utf8"), b""), file.path
        ),
    )


def _first_items(whole: FileSplit) -> tuple[list[Record | Damage], float]:
    """Return the first records of a file, and the share of the file that they make up."""
    reader = open_reader(whole, _INPUT_FORMAT)
    reader.skips_checksum = True
    bounded = BoundedReader(
        reader,
        seconds=HEAD_SECONDS,
        units=HEAD_RECORDS if whole.form == "parquet" else HEAD_BYTES,
        packed=compression(whole.path) is not None or whole.form == "arrow",
    )
    items = [*map(_decoded, bounded)]
    size = whole.end - whole.start  # bytes, or rows of Parquet
    return items, min(bounded.consumed or size, size) / size if size else 1.0


def _decoded(item: Record | Damage) -> Record | Damage:
    """Return a record; UTF-8 bytes in a row become text, as in the text columns of a run."""
    if isinstance(item, Damage) or item.raw:
        return item
    return item._replace(value={name: text_of(value) for name, value in item.value.items()})


def _hint(peek: Peek) -> str:
    if peek.format == "lines" and _HTML.match(peek.head):
        return "a web page (HTML): its lines are read as they are, with their tags"
    if peek.looks_wrapped:
        return "its lines seem to be parts of one text: --format file makes each file one document"
    return ""


def _conversion(text: bytes, path: str) -> str:
    """Return advice on converting a file to UTF-8; "" if the encoding of `text` is unknown."""
    encoding = other_encoding(text)
    if not encoding:
        return ""
    codec, name = compression(path), shlex.quote(path)
    command = f"{codec} -dc {name} | iconv" if codec else "iconv"
    inner = PurePosixPath(path).name
    stem, dot, ending = (inner.rpartition(".")[0] if codec else inner).rpartition(".")
    output = shlex.quote(f"{stem}.utf8.{ending}" if dot else f"{ending}.utf8")
    source = "" if codec else f" {name}"
    return (
        f"its text is probably {encoding}; to convert it: {command} -f {encoding.split()[0]} "
        f"-t UTF-8{source} > {output}"
    )


def _head_of(peek: Peek) -> bytes:
    try:
        return peek.head
    except UserError:
        return b""


def _place(whole: FileSplit, item: Damage) -> str:
    if whole.form in ("parquet", "arrow"):
        return f"row {item.offset}"
    if whole.form in ("json", "objects"):
        return f"byte {item.offset}"
    with open_stream(whole) as stream:
        before, line = item.offset, 1
        while before and (block := stream.read(before)):
            before -= len(block)
            line += block.count(b"\n")
    return f"line {line}"
