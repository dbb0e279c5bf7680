"""The part of a run that --part names: shares of the corpus to map, or the end of the run."""

import argparse
import re
from collections.abc import Sequence
from fractions import Fraction

MERGE = "merge"
"""Instead of shares: make the dataset of the segments of all shares."""

MAX_PARTS = 1000

_SHARE = re.compile(r"([0-9]+)/([0-9]+)")


def parse_part(text: str) -> tuple[str, ...]:
    """Return the shares that a text names, as in "1/4" or "2/4,3/4"; or MERGE alone."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in words if words != (MERGE,) else ():
        matched = _SHARE.fullmatch(word)
        if not matched or not 1 <= int(matched[1]) <= int(matched[2]) <= MAX_PARTS:
            raise argparse.ArgumentTypeError(
                f"{word!r} is no share of at most {MAX_PARTS} (2/4 is the second of four), and "
                f"not {MERGE!r}"
            )
    return words


def is_share(part: Sequence[str]) -> bool:
    """Return whether these are shares to map; not for a whole run, nor for MERGE."""
    return bool(part) and tuple(part) != (MERGE,)


def corpus_fraction(part: Sequence[str]) -> float:
    """Return how much of the corpus these shares make up, at most; 1 without shares."""
    shares = map(share_bounds, part) if is_share(part) else [(Fraction(0), Fraction(1))]
    return min(1.0, float(sum(high - low for low, high in shares)))


def share_bounds(share: str) -> tuple[Fraction, Fraction]:
    """Return where share I/N of a corpus begins and ends, from 0 to 1."""
    index, num = map(int, share.split("/"))
    return Fraction(index - 1, num), Fraction(index, num)
