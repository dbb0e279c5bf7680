"""Records, and damage: the items that readers yield."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pipelines.read.value import as_json

BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""

MAX_RECORD_BYTES = 32 << 20
BLOCK_BYTES = 4 << 20
"""How much is read at a time."""
RAW_BYTES = 64 << 10
"""How much is kept of damage that has no known end, or is too long."""
WHOLE_BYTES = 256 << 10
"""How much is kept of a record that cannot be used: all of nearly every one, to be repaired."""

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
"""Reasons to reject a record before it is judged; `pipelines.segments.rows.REJECTS` has each."""


CUT: frozenset[Reason] = frozenset(("truncated", "unterminated-array", "bad-archive"))
"""Reasons of damage where a file ends too early, which is not a record."""


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record that a reading function could not read, which it yields instead."""

    reason: Reason = "bad-archive"
    raw: bytes = b""
    """Its first bytes, for rejects/."""


class Record(NamedTuple):
    """A record of an input file; (offset, length) is its identity there."""

    offset: int
    """Where it begins, in bytes of the uncompressed file; in a table, its row number."""
    length: int
    """Its length in bytes; in a table, 1."""
    value: Mapping[str, Any]
    """Its fields."""
    raw: bytes
    """Its bytes; empty for a row of a table."""

    @property
    def size(self) -> int:
        """Return roughly how many bytes of text it holds."""
        if self.raw:
            return len(self.raw)
        return sum(len(value) for value in self.value.values() if isinstance(value, str))

    @property
    def head(self) -> bytes:
        """Return its first WHOLE_BYTES; of a row, those of its JSON."""
        return (self.raw or as_json(self.value))[:WHOLE_BYTES]


class Damage(NamedTuple):
    """A stretch of an input file where a record should be and is not."""

    offset: int
    """Where it begins, counted like a record's offset."""
    length: int
    """Its length; 0 if a file ends too early."""
    reason: Reason
    """Why it is not a record."""
    raw: bytes
    """Its first WHOLE_BYTES, or RAW_BYTES where its end is not known or it is too long."""
    num_bytes: int = 0
    """About how many bytes it takes, where `length` counts rows."""

    @property
    def size(self) -> int:
        """Return about how many bytes of the input it takes."""
        return max(self.length, self.num_bytes, len(self.raw))

    @property
    def head(self) -> bytes:
        """Return the bytes that are kept of it."""
        return self.raw


def strings_in(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield every string in a value of JSON, however deeply nested, with where it is.

    Args:
        value: An object or an array.

    Yields:
        The object or array that holds it, its key or number there, and the string; another value
        may be put in its place.
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
