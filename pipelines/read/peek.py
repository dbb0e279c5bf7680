"""What a file is, by its name and its first bytes, and whether that is what it should be.

The ending of a name says how a file is compressed (.gz, .zst, .bz2, .xz), and the part before that
says what is inside (.jsonl, .jsonlines, .ndjson, .txt, .parquet), in upper or lower case. For a
file named .json, or anything else, its first bytes decide: an array of objects, or an object on
each line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

from pipelines.read.arrow import arrow_columns
from pipelines.read.compressed import compression
from pipelines.read.endings import FROM_TABLES, without_compression
from pipelines.read.file_head import BOM, excerpt, read_head
from pipelines.read.files import open_input, readable
from pipelines.read.json_array import check_array, check_bare, is_wrapped
from pipelines.read.json_scan import array_start, spans_lines
from pipelines.read.jsonl import check_objects
from pipelines.read.lines import check_lines, looks_wrapped
from pipelines.read.row_groups import open_parquet
from pipelines.read.rows import check_columns
from shards.errors import UserError

Known = Literal["json", "jsonl", "objects", "lines", "file", "parquet", "arrow"]
"""An array of objects; objects, on a line each or over several; texts, on a line each or a file;
tables."""
Format = Known | Literal["custom"]
"""One of these, or what a function of a corpus reads."""

_ENDINGS: dict[str, Known] = {
    ".jsonl": "jsonl",
    ".jsonlines": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "lines",
    ".parquet": "parquet",
    ".arrow": "arrow",
}


@dataclass(frozen=True)
class Peek:
    """The beginning of a file, which is read when it is first needed, and once."""

    path: str
    given: Format | Literal["auto"] = "auto"
    """The format that the file should be in; "auto": its name or first bytes decide."""
    text_fields: tuple[str, ...] = ()
    """Fields that hold text."""

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked.

        Raises:
            UserError: The file cannot be opened, or is not compressed although its name says so.
        """
        return read_head(self.path)

    @cached_property
    def format(self) -> Format:
        """The format of the file.

        Raises:
            UserError: Neither its name nor its first bytes show it.
        """
        if self.given != "auto":
            return self.given
        name = without_compression(self.path.lower())
        named = (form for ending, form in _ENDINGS.items() if name.endswith(ending))
        return next(named, None) or _format_inside(self.path, self.head, self.text_fields)

    @property
    def is_table(self) -> bool:
        """Whether its records are rows."""
        return self.format in ("parquet", "arrow")

    @property
    def is_wrapped(self) -> bool:
        """Whether it is an object that holds the array."""
        return self.format == "json" and is_wrapped(self.head)

    @property
    def looks_wrapped(self) -> bool:
        """Whether its lines seem to be parts of one text."""
        return self.format == "lines" and looks_wrapped(self.head)

    def check(self) -> None:
        """Check that the file is not obviously something other than its format.

        Raises:
            UserError: It is; the message says what it is and what was expected.
        """
        if self.format == "custom":  # whose reader finds out
            return
        if self.is_table:
            names = _parquet_columns if self.format == "parquet" else arrow_columns
            check_columns(names(self.path), self.path, text_fields=self.text_fields)
        elif self.head:  # an empty archive, or one broken from its start, counts as damage
            check: Mapping[Format, Callable[[bytes, str], None]] = {
                "json": partial(check_array, text_fields=self.text_fields),
                "jsonl": check_objects,
                "objects": check_bare,
                "lines": check_lines,
                "file": check_lines,
            }
            check[self.format](self.head, self.path)


def _parquet_columns(path: str) -> list[str]:
    if codec := compression(path):
        raise UserError(
            f"The input {path} is a {codec} archive of a Parquet file, whose row groups "
            "cannot be found in it; unpack it first."
        )
    with open_input(path) as handle, readable(path):
        return [*open_parquet(handle, path).schema_arrow.names]


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
