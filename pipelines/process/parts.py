"""Divides a run into parts, and finds out which parts are missing.

All items are laid out in one line, each with a length in bytes. Share i/N is the i-th of N equal
sections of this line, and contains the items whose middle is in it. These items are neighbours, so
different machines read mostly different files. A share depends only on the corpus and on N. Shares
with different N cover the corpus together if their sections do.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from pipelines.corpus.part import share_bounds
from pipelines.process.processor import ProcessItem
from pipelines.read.split import FileSplit

_MAX_RANGES = 8


def items_of_part(items: Sequence[ProcessItem], part: Sequence[str]) -> list[ProcessItem]:
    """Return the items of some shares, in order.

    Args:
        items: All items of a corpus, in order.
        part: The shares.
    """
    bounds = [share_bounds(share) for share in part]
    middles = _middles(items)
    return [item for item in items if any(low <= middles[item.name] < high for low, high in bounds)]


def shares_for(items: Sequence[ProcessItem], missing: Sequence[ProcessItem]) -> str:
    """Return the value of --part that covers the missing items and as few other items as possible.

    Args:
        items: All items of a corpus, in order.
        missing: The missing items.
    """
    middles = _middles(items)

    def shares(num: int) -> list[int]:
        return sorted({int(middles[item.name] * num) for item in missing})

    def num_others(num: int) -> int:
        held = {*shares(num)}
        return sum(int(middle * num) in held for middle in middles.values()) - len(missing)

    num = min(range(1, 33), key=lambda num: (num_others(num), num))
    return ",".join(f"{index + 1}/{num}" for index in shares(num))


def describe_ranges(splits: Sequence[FileSplit]) -> str:
    """Return the first _MAX_RANGES files and ranges of splits, for an error message."""
    joined: list[tuple[str, int, int]] = []
    for split in splits:
        name = f"{split.source}/{split.relative}"
        if joined and joined[-1][0] == name and joined[-1][2] == split.start:
            joined[-1] = (name, joined[-1][1], split.end)
        else:
            joined.append((name, split.start, split.end))
    shown = [f"{name} {_unit(name)} {start} to {end}" for name, start, end in joined[:_MAX_RANGES]]
    left = len(joined) - _MAX_RANGES
    return ", ".join(shown) + (f" and {left} more ranges" if left > 0 else "")


def _unit(name: str) -> str:
    return "rows" if name.lower().endswith(".parquet") else "bytes"


def _middles(items: Sequence[ProcessItem]) -> dict[str, Fraction]:
    """Return the middle of each item, from 0 to 1 along all items laid end to end, by item name."""
    ends: dict[tuple[str, str], int] = {}
    for split in (split for item in items for split in item.splits):
        ends[split.name] = max(split.end, ends.get(split.name, 1))  # rows for tables
    lengths = {item.name: _length(item, ends) for item in items}
    total, before, middles = sum(lengths.values()) or 1, Fraction(0), {}
    for name, length in lengths.items():
        middles[name] = (before + length / 2) / total
        before += length
    return middles


def _length(item: ProcessItem, ends: Mapping[tuple[str, str], int]) -> Fraction:
    """Return the number of bytes of an item, given the end of each file."""
    parts = (
        Fraction((split.end - split.start) * split.file_bytes, ends[split.name])
        for split in item.splits
    )
    return sum(parts, Fraction(0))
