"""A range of the order hash: see shards/range.py."""

from shards.range import (
    EVERYTHING,
    Range,
)

__all__ = (
    "EVERYTHING",
    "Range",
)
