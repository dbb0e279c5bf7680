"""Records and damage, which are the items that readers yield."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pipelines.read.value import as_json

BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""

MAX_RECORD_BYTES = 32 << 20
BLOCK_BYTES = 4 << 20
"""The number of bytes to read at a time."""
RAW_BYTES = 64 << 10
"""The maximum number of bytes kept of damage that is too long or whose end is unknown."""
WHOLE_BYTES = 256 << 10
"""The maximum number of bytes kept of an unusable record; nearly all records fit, so that they can
be repaired."""

Reason = Literal[
    "bad-utf8",
    "bad-json",
    "not-an-object",
    "truncated",
    "too-long",
    "unterminated-array",
    "trailing-bytes",
    "bad-archive",
    "bad-row-group",
    "wrong-type",
]
"""Reasons to reject a record before it is judged; all of them are among QUARANTINE_REASONS
(`pipelines/segments/rows.py`)."""


TRUNCATED: frozenset[Reason] = frozenset(("truncated", "unterminated-array", "bad-archive"))
"""The reasons for damage where a file ends too early; such damage does not count as a record."""


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A marker that a reading function yields for a record that it could not read."""

    reason: Reason = "bad-archive"
    raw: bytes = b""
    """The first bytes of the record, for rejects/."""


class Record(NamedTuple):
    """A record of an input file, identified by (offset, length) in the file."""

    offset: int
    """The start of the record, in bytes of the uncompressed file; in a table, the row number."""
    length: int
    """The length in bytes; in a table, 1."""
    value: Mapping[str, Any]
    """The fields of the record."""
    raw: bytes
    """The bytes of the record; empty for a row of a table."""

    @property
    def size(self) -> int:
        """The approximate number of bytes of text in the record."""
        if self.raw:
            return len(self.raw)
        return sum(len(value) for value in self.value.values() if isinstance(value, str))

    @property
    def head(self) -> bytes:
        """The first WHOLE_BYTES of the record; for a row of a table, those of its JSON."""
        return (self.raw or as_json(self.value))[:WHOLE_BYTES]


class Damage(NamedTuple):
    """A part of an input file where a record should be but is not."""

    offset: int
    """The start of the damage, counted like a record's offset."""
    length: int
    """The length of the damage; 0 if a file ends too early."""
    reason: Reason
    """The reason why the damage is not a record."""
    raw: bytes
    """The first WHOLE_BYTES of the damage; RAW_BYTES if its end is unknown or it is too long."""
    num_bytes: int = 0
    """The approximate size in bytes if `length` counts rows."""

    @property
    def size(self) -> int:
        """The approximate number of input bytes that the damage takes up."""
        return max(self.length, self.num_bytes, len(self.raw))

    @property
    def head(self) -> bytes:
        """The bytes that are kept of the damage."""
        return self.raw


def strings_in(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield every string in a JSON value, however deeply nested, and its position.

    Args:
        value: An object or an array.

    Yields:
        The object or array that contains the string, its key or index there, and the string. The
        caller may assign a new value to that position.
    """
    containers = [value]
    while containers:
        container = containers.pop()
        items = container.items() if isinstance(container, Mapping) else enumerate(container)
        for key, item in items:
            if isinstance(item, Mapping | list):
                containers.append(item)
            elif isinstance(item, str):
                yield container, key, item
