"""A run in parts: the share of a corpus that a machine maps, and what is missing at the end.

All splits of all files stand in one row, each as long as it has bytes. Share i of N is the i-th of
N even lengths of that row and takes the splits whose middle lies in it: neighbours, so that a
machine reads mostly files of its own. It depends on the corpus and on N alone, and shares of
different N cover the corpus together where their lengths do.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from pipelines.corpus.part import share_bounds
from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Split

_SHOWN = 8

Chains = Mapping[InputFile, Sequence[Split]]
"""The splits of every file, in order."""


def chosen(chains: Chains, part: Sequence[str]) -> list[Split]:
    """Return the splits of some shares, in order."""
    bounds = [share_bounds(share) for share in part]
    return [
        split
        for split, middle in _middles(chains).items()
        if any(low <= middle < high for low, high in bounds)
    ]


def shares_for(chains: Chains, missing: Sequence[Split]) -> str:
    """Return shares that hold these splits and as few others as may be, as a person names them."""
    middles = _middles(chains)

    def shares(num: int) -> list[int]:
        return sorted({int(middles[split] * num) for split in missing})

    def others(num: int) -> int:
        held = {*shares(num)}
        return sum(int(middle * num) in held for middle in middles.values()) - len(missing)

    num = min(range(1, 33), key=lambda num: (others(num), num))
    return ",".join(f"{index + 1}/{num}" for index in shares(num))


def ranges(splits: Sequence[Split]) -> str:
    """Return files and ranges of splits as a person reads them, the first few of them."""
    joined: list[tuple[str, int, int]] = []
    for split in splits:
        name = f"{split.source}/{split.relative}"
        if joined and joined[-1][0] == name and joined[-1][2] == split.start:
            joined[-1] = (name, joined[-1][1], split.end)
        else:
            joined.append((name, split.start, split.end))
    shown = [f"{name} {_unit(name)} {start} to {end}" for name, start, end in joined[:_SHOWN]]
    more = f" and {len(joined) - _SHOWN} more ranges" if len(joined) > _SHOWN else ""
    return ", ".join(shown) + more


def _unit(name: str) -> str:
    return "rows" if name.endswith(".parquet") else "bytes"


def _middles(chains: Chains) -> dict[Split, Fraction]:
    """Return where the middle of each split lies in the row, from 0 to 1."""
    total, before, found = sum(file.bytes for file in chains), 0, {}
    for file, chain in chains.items():
        end = max(1, chain[-1].end)  # in rows, for a table
        for split in chain:
            inside = Fraction(split.start + split.end, 2 * end) * file.bytes
            found[split] = (before + inside) / total
        before += file.bytes
    return found
