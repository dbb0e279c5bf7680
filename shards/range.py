"""Ranges of the order hash; each item of the merge stage works on one range."""

import itertools
from dataclasses import dataclass

ROWS_AT_ONCE = 500_000
BYTES_AT_ONCE = 128 << 20
"""The maximum numbers of audit rows, and of bytes of texts and rejects, merged at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The documents with low <= order < high."""

    low: int
    high: int

    @classmethod
    def of(cls, index: int, total: int) -> "Range":
        """Return the range of the orders with (order * total) >> 64 == index."""
        return cls(low=-(-(index << 64) // total), high=-(-((index + 1) << 64) // total))

    def overlaps(self, other: "Range") -> bool:
        """Return whether the two ranges have an order in common."""
        return self.low < other.high and other.low < self.high

    def intersection(self, other: "Range") -> "Range":
        """Return the intersection of two overlapping ranges."""
        return Range(low=max(self.low, other.low), high=min(self.high, other.high))


FULL_RANGE = Range(low=0, high=2**64)


def split_range(within: Range, *, rows: int, held_bytes: int) -> list[Range]:
    """Split a range into parts of bounded size, assuming uniformly distributed rows.

    Args:
        within: The range.
        rows: The number of audit rows over all orders.
        held_bytes: The size of the texts and rejects of these rows, in bytes.
    """
    width = within.high - within.low
    parts = max(
        1, -(-rows * width // (ROWS_AT_ONCE << 64)), -(-held_bytes * width // (BYTES_AT_ONCE << 64))
    )
    edges = [within.low + width * number // parts for number in range(parts + 1)]
    return [Range(low=low, high=high) for low, high in itertools.pairwise(edges)]
