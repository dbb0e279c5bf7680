"""Detects the format of a file by its name and first bytes, and checks that these agree.

The extension gives the compression of a file (.gz, .zst, .bz2, .xz), and the extension before that
gives the format of its content (.jsonl, .jsonlines, .ndjson, .txt, .parquet, .arrow); both may be
in upper or lower case. The format of any other file, including .json, is determined by its first
bytes.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipelines.read.arrow import arrow_columns
from pipelines.read.compressed import MAGICS, SUFFIXES, compression, is_compressed
from pipelines.read.encoding import iconv, other_encoding, wide_encoding
from pipelines.read.files import open_input, readable
from pipelines.read.input_format import BuiltinFormat, Format, InputFormat
from pipelines.read.json_object import object_record
from pipelines.read.json_scan import array_start, spans_lines
from pipelines.read.names import FROM_TABLES, without_compression
from pipelines.read.record import BOM, Record
from pipelines.read.row_groups import open_parquet
from pipelines.read.rows import check_columns
from pipelines.read.stream import stream_of, whole_file
from shards.errors import UserError

HEAD_BYTES = 64 << 10
"""The number of bytes read to detect a file's format; an array has to begin within them."""

_MAGIC_BYTES = 4
_ARCHIVES = {**MAGICS, "zip": b"PK\x03\x04", "rar": b"Rar!", "7z": b"7z\xbc\xaf"}
_ENDINGS: Mapping[str, BuiltinFormat] = {
    ".jsonl": "jsonl",
    ".jsonlines": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "lines",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_BY_COLUMNS = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*+"\s*:\s*\{\s*"0"\s*:')
"""Matches the beginning of a table that is stored by columns: {"text": {"0": …"""
_EXPECTED: Mapping[Format, tuple[str, str]] = {
    "json": ("a JSON array of objects", '[{...}, ...] or {"RECORDS": [{...}, ...]}, in UTF-8'),
    "jsonl": ("a file of JSON lines", 'one object per line, as in {"text": ...}, in UTF-8'),
    "objects": ("a series of JSON objects", "{...}, in UTF-8"),
    "lines": ("lines of text", "UTF-8"),
    "file": ("text", "UTF-8"),
}
"""For each format, a noun for the contents of a file and the expected beginning of a file."""


@dataclass(frozen=True)
class Peek:
    """Reads the beginning of a file once, when it is first needed."""

    path: str
    input_format: InputFormat
    """The options for reading the file."""

    @cached_property
    def head(self) -> bytes:
        """The first HEAD_BYTES, decompressed; fewer if the content is shorter.

        Raises:
            UserError: The file cannot be opened, or is not compressed although its name says so.
        """
        path, codec = self.path, compression(self.path)
        with open_input(path) as handle, readable(path):
            if codec is None:
                return handle.read(HEAD_BYTES)
            magic = handle.read(_MAGIC_BYTES)
            if not is_compressed(magic, codec):
                raise UserError(
                    f"The input {path} is not compressed with {codec}, although its name says "
                    f"so: it begins with {magic!r}. Fetch it again, or correct its extension."
                )
            return stream_of(handle, whole_file(handle, path)).read(HEAD_BYTES)

    @cached_property
    def format(self) -> Format:
        """The format of the file.

        Raises:
            UserError: Neither the name nor the first bytes of the file show its format.
        """
        if self.input_format.read:
            return "custom"
        if self.input_format.format != "auto":
            return self.input_format.format
        name = without_compression(self.path.lower())
        named = (form for ending, form in _ENDINGS.items() if name.endswith(ending))
        return next(named, None) or self._format_inside()

    def _format_inside(self) -> BuiltinFormat:
        path, head = self.path, self.head
        if head.startswith(b"PAR1"):
            return "parquet"
        if head.startswith(b"ARROW1"):
            return "arrow"
        text = head.removeprefix(BOM).lstrip()
        if text.startswith(b"[") or array_start(head, self.input_format.text_fields) is not None:
            return "json"
        if text.startswith(b"{"):
            return "objects" if spans_lines(head) else "jsonl"
        if not text or ".json" in path.lower():
            return "json"
        raise UserError(
            f"Neither the name nor the first bytes of the input {path} show its format: it begins "
            f"with {excerpt(head)}. Give it the right extension: .json, .jsonl, .txt or "
            f".parquet.{f' {FROM_TABLES}' if path.lower().endswith(('.csv', '.tsv')) else ''}"
        )

    @property
    def is_table(self) -> bool:
        """Whether the records are rows of a table."""
        return self.format in ("parquet", "arrow")

    @property
    def is_wrapped(self) -> bool:
        """Whether the file is an object that contains the array of records."""
        return self.format == "json" and is_wrapped(self.head)

    @property
    def looks_wrapped(self) -> bool:
        """Whether the lines seem to be parts of one text."""
        return self.format == "lines" and _looks_wrapped(self.head)

    @property
    def is_by_columns(self) -> bool:
        """Whether the file seems to be one object: a table by columns, as pandas writes it."""
        if self.format not in ("jsonl", "objects") or b"\n{" in self.head:
            return False
        return _BY_COLUMNS.match(self.head.removeprefix(BOM)) is not None

    def check(self) -> None:
        """Check that the file is not obviously in a different format.

        Raises:
            UserError: The file is in a different format; the message names that format and the
                expected one.
        """
        form = self.format
        if self.is_table:
            names = arrow_columns if form == "arrow" else _parquet_columns
            check_columns(names(self.path), self.path, text_fields=self.input_format.text_fields)
        elif form == "json" and self.head:
            self._check_array()
        # A custom reader checks its own format, and a broken archive is damage.
        elif form != "custom" and self.head and not _fits(form, self.head):
            raise not_in_format(form, self.head, self.path)

    def _check_array(self) -> None:
        start = array_start(self.head, self.input_format.text_fields)
        if start is None:
            raise not_in_format("json", self.head, self.path)
        elements = self.head[start:].lstrip()
        if elements[:1] not in b"{]" and not re.search(rb"\{\s*\"", elements):
            raise UserError(
                f"The input {self.path} is a JSON array, but not of objects: its first element "
                f"begins with {excerpt(elements)}. Expected: "
                '[{"title": ..., "content": ...}, ...].'
            )


def is_wrapped(head: bytes) -> bool:
    """Return whether a file begins with an object, which may contain the array of records."""
    return head.removeprefix(BOM).lstrip().startswith(b"{")


def not_in_format(form: Format, head: bytes, path: str) -> UserError:
    """Return the error for a file that is not in the expected format.

    Args:
        form: The expected format.
        head: The first bytes of the file, decompressed.
        path: The path of the file.
    """
    noun, expected = _EXPECTED[form]
    return UserError(
        f"The input {path} is not {noun}: {_described(form, head)}. Expected: {expected}."
    )


def _fits(form: Format, head: bytes) -> bool:
    if form in ("lines", "file"):
        return foreign_format(head) is None and b"\0" not in head
    return _holds_objects(head) if form == "jsonl" else is_wrapped(head)


def _holds_objects(head: bytes) -> bool:
    """Return whether a file begins with objects, one per line; some of the lines may be damaged."""
    lines = [line.strip() for line in head.removeprefix(BOM).split(b"\n")]
    last = lines.pop()  # The last line may be cut off.
    is_object = [_is_object(line) for line in lines if line]
    array = array_start(head) is not None and not (is_object and is_object[0])
    if (any(is_object) or _is_object(last)) and not array:
        return True
    return not is_object and (not last or last.startswith(b"{"))


def _is_object(line: bytes) -> bool:
    return isinstance(object_record(0, line, None), Record)


def _described(form: Format, head: bytes) -> str:
    """Return a description of a file that is not in the expected format, as part of a message."""
    if foreign := foreign_format(head):
        return foreign
    begins = f"it begins with {excerpt(head)}"
    if form in ("lines", "file"):
        return f"it is binary: {begins}"
    if encoding := other_encoding(head):
        return f"it is probably {encoding}, not UTF-8; convert it: {iconv(encoding)}"
    if form == "json":
        return _other_objects(head) or begins
    return _other_lines(head) or begins if form == "jsonl" else begins


def _other_objects(head: bytes) -> str:
    """Return a description of a file that contains objects but no array; "" for other files."""
    if re.match(rb"\s*\{.*\}\s*\n\s*\{", head):
        return "it has one object per line (JSON lines)"
    if re.match(rb"\s*\{", head):
        return f'it is an object without the key "RECORDS" near its start: {excerpt(head)}'
    return ""


def _other_lines(head: bytes) -> str:
    """Return a description of a file that contains JSON but no JSON lines; "" for other files."""
    if array_start(head) is not None:
        return "it is a JSON array, whose format is json"
    if not head.lstrip().startswith(b"{"):
        return ""
    if spans_lines(head):
        return (
            "its objects span several lines: give it the extension .json, or write one object per "
            f"line: jq -c . FILE > NEW. It begins with {excerpt(head)}"
        )
    return f"its objects are damaged: {excerpt(head)}"


def foreign_format(head: bytes) -> str | None:
    """Return the format of a file that is not UTF-8 text, for a message; None if it may be text.

    Args:
        head: The first bytes of the file.
    """
    for archive, magic in _ARCHIVES.items():
        if head.startswith(magic):
            endings = [ending for ending, codec in SUFFIXES.items() if codec == archive]
            remedy = f" or give it the extension {endings[0]}" if endings else ""
            return f"it is an archive ({archive}): unpack it first{remedy}"
    if head.startswith(b"PAR1"):
        return "it is a Parquet file: give it the extension .parquet"
    if wide := wide_encoding(head):
        return f"it is {wide}; convert it: {iconv(wide)}"
    return None


def excerpt(head: bytes) -> str:
    """Return the first 40 bytes of a file, quoted for a message."""
    return repr(head[:40].decode(errors="replace"))


def _parquet_columns(path: str) -> Sequence[str]:
    if codec := compression(path):
        raise UserError(
            f"The input {path} is a Parquet file in a {codec} archive, where its row groups cannot "
            "be found; unpack it first."
        )
    with open_input(path) as handle, readable(path):
        return [*open_parquet(handle, path).schema_arrow.names]


_MIN_LINES = 8
_MIN_WIDTH, _MAX_WIDTH = 25, 120
"""The minimum median width of the lines of a wrapped text, and the maximum width of nine lines in
ten."""
_MIN_RUNNING = 0.3
_ENDS = ".!?:;…。！？：；\"'”’」』)）"


def _looks_wrapped(head: bytes) -> bool:
    """Return whether a text seems to continue from line to line, as in files of books.

    The lines of such a text have about the same width, and many end within a sentence.
    """
    lines = [line.strip() for line in head.decode(errors="replace").split("\n")[:-1]]
    widths = sorted(map(len, filter(None, lines)))
    if len(widths) < _MIN_LINES:
        return False
    pairs = [(line, after) for line, after in itertools.pairwise(lines) if line and after]
    runs_on = sum(line[-1] not in _ENDS and not after[0].isupper() for line, after in pairs)
    middle, wide = widths[len(widths) // 2], widths[len(widths) * 9 // 10]
    return middle >= _MIN_WIDTH and wide <= _MAX_WIDTH and runs_on >= _MIN_RUNNING * len(widths)
