"""The options that say how the files of a corpus are read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, get_args

from pipelines.read.record import MAX_RECORD_BYTES, BrokenRecord

Known = Literal["json", "jsonl", "objects", "lines", "file", "parquet", "arrow"]
"""An array of objects; objects, one per line or over several; texts, one per line or per file;
tables."""
Format = Known | Literal["custom"]
"""One of these, or what a function of a corpus reads."""

Read = Callable[[BinaryIO], Iterable[Mapping[str, Any] | BrokenRecord]]
"""Yields the records of a file, from an unpacked stream that can only be read forwards."""

REJECT, REPLACE, REMOVE = "reject", "replace", "remove"
"""Options for a record with invalid UTF-8 or with NUL characters."""


@dataclass(frozen=True, kw_only=True)
class InputFormat:
    """How to read the files of a corpus."""

    format: Known | Literal["auto"] = "auto"
    """The format of all files; "auto" decides for each file."""
    text_fields: tuple[str, ...] = ()
    """Fields that hold text: they distinguish a record of an array from an object nested in one,
    and a table needs one of them; its columns of binary type are read as UTF-8."""
    fields: tuple[str, ...] | None = None
    """All fields that the corpus looks at, with dots for a field in a field; None: it may look at
    any. Other columns of a table are not read."""
    whole: bool = False
    """Read all columns of a table, though the corpus looks at `fields` only."""
    read: Read | None = None
    """The function of a module that reads files of another format, from a binary stream to
    records."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """A longer record is damage."""
    bad_utf8: str = REJECT
    """REJECT, or REPLACE: invalid bytes and lone surrogates become U+FFFD."""
    nul: str = REJECT
    """REJECT, or REMOVE: NUL characters are removed from all strings."""
    newline: str = ""
    """The text that means a line feed in a text of the format "lines", for example "<n>"."""

    def __post_init__(self) -> None:
        if self.format not in ("auto", *get_args(Known)):
            raise ValueError(f"format must be auto or one of {get_args(Known)}: {self.format!r}")
        if self.read and self.format != "auto":
            raise ValueError(f"a reading with a function has no format: {self.format!r}")
        if self.max_record_bytes < 1:
            raise ValueError(f"max_record_bytes must be at least 1, not {self.max_record_bytes}")

    @property
    def repairs(self) -> bool:
        """Whether records are changed as they are read."""
        return (self.bad_utf8, self.nul) != (REJECT, REJECT)
