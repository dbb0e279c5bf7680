"""A run in parts: the share of a corpus that a machine maps, and what is missing at the end.

All splits of all files stand in one row, each as long as it has bytes. Share i of N is the i-th of
N equal lengths of that row and takes the splits whose middle lies in it: neighbours, so that a
machine reads mostly files of its own. A share depends only on the corpus and on N, and shares of
different N cover the corpus together if their lengths do.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from pipelines.corpus.part import share_bounds
from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Split

_MAX_RANGES = 8

Chains = Mapping[InputFile, Sequence[Split]]
"""The splits of every file, in order."""


def splits_of_part(chains: Chains, part: Sequence[str]) -> list[Split]:
    """Return the splits of some shares, in order."""
    bounds = [share_bounds(share) for share in part]
    return [
        split
        for split, middle in _middles(chains).items()
        if any(low <= middle < high for low, high in bounds)
    ]


def shares_for(chains: Chains, missing: Sequence[Split]) -> str:
    """Return the value of --part whose shares hold these splits and as few others as possible."""
    middles = _middles(chains)

    def shares(num: int) -> list[int]:
        return sorted({int(middles[split] * num) for split in missing})

    def num_others(num: int) -> int:
        held = {*shares(num)}
        return sum(int(middle * num) in held for middle in middles.values()) - len(missing)

    num = min(range(1, 33), key=lambda num: (num_others(num), num))
    return ",".join(f"{index + 1}/{num}" for index in shares(num))


def describe_ranges(splits: Sequence[Split]) -> str:
    """Return the files and ranges of splits for an error message: the first _MAX_RANGES."""
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


def _middles(chains: Chains) -> dict[Split, Fraction]:
    """Return where the middle of each split lies in the row, from 0 to 1."""
    total, before, middles = sum(file.bytes for file in chains), 0, {}
    for file, chain in chains.items():
        end = max(1, chain[-1].end)  # in rows, for a table
        for split in chain:
            inside = Fraction(split.start + split.end, 2 * end) * file.bytes
            middles[split] = (before + inside) / total
        before += file.bytes
    return middles
