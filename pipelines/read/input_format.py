"""The options that specify how the files of a corpus are read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, get_args

from pipelines.read.record import MAX_RECORD_BYTES, BrokenRecord

BuiltinFormat = Literal["json", "jsonl", "objects", "lines", "file", "parquet", "arrow"]
"""The formats that this package reads: an array of objects, one object per line, objects that span
several lines, one text per line, one text per file, and two kinds of tables."""
Format = BuiltinFormat | Literal["custom"]
"""A built-in format, or a custom format that a function of the corpus reads."""

ReadFunction = Callable[[BinaryIO], Iterable[Mapping[str, Any] | BrokenRecord]]
"""A function that yields the records of a file; its argument is a stream of the decompressed
content, which can only be read forwards."""

REJECT, REPLACE, REMOVE = "reject", "replace", "remove"
"""The ways to treat a record with invalid UTF-8 or with NUL characters."""


@dataclass(frozen=True, kw_only=True)
class InputFormat:
    """Describes how to read the files of a corpus."""

    format: BuiltinFormat | Literal["auto"] = "auto"
    """The format of all files; "auto" detects the format of each file."""
    text_fields: tuple[str, ...] = ()
    """The fields that contain text. They distinguish a record in an array from an object nested in
    a record. A table must have one of these fields; those of binary type are read as UTF-8."""
    fields: tuple[str, ...] | None = None
    """All fields that the corpus uses, with dots for nested fields; None means that it may use any
    field. All other columns of a table are not read."""
    all_columns: bool = False
    """Whether to read all columns of a table, even those that the corpus does not use."""
    read: ReadFunction | None = None
    """The function that reads a custom format: it turns a binary stream into records."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """The maximum length of a record; a longer record is damage."""
    bad_utf8: str = REJECT
    """The treatment of invalid UTF-8 and lone surrogates: REJECT, or REPLACE (by U+FFFD)."""
    nul: str = REJECT
    """The treatment of NUL characters: REJECT, or REMOVE (from all strings)."""
    newline: str = ""
    """The text that stands for a line feed in the format "lines", for example "<n>"."""

    def __post_init__(self) -> None:
        if self.format not in ("auto", *get_args(BuiltinFormat)):
            raise ValueError(
                f"format must be auto or one of {get_args(BuiltinFormat)}: {self.format!r}"
            )
        if self.read and self.format != "auto":
            raise ValueError(f"give either read or format, not both: {self.format!r}")
        if self.max_record_bytes < 1:
            raise ValueError(f"max_record_bytes must be at least 1, not {self.max_record_bytes}")

    @property
    def repairs(self) -> bool:
        """Whether records are changed as they are read."""
        return (self.bad_utf8, self.nul) != (REJECT, REJECT)
