"""A range of the order hash, such as a task of merge works on."""

from dataclasses import dataclass


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
        """Return whether an order may lie in both."""
        return self.low < other.high and other.low < self.high

    def common(self, other: "Range") -> "Range":
        """Return the range of the orders that lie in both, which overlap."""
        return Range(low=max(self.low, other.low), high=min(self.high, other.high))


EVERYTHING = Range(low=0, high=2**64)
