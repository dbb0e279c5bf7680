"""The part of a run that --part chooses: shares of the corpus to process, or the final merge."""

import argparse
import re
from collections.abc import Sequence
from fractions import Fraction

MERGE = "merge"
"""The value of --part that makes the dataset from the segments of all shares."""

MAX_PARTS = 1000

_SHARE = re.compile(r"([0-9]+)/([0-9]+)")


def parse_part(text: str) -> tuple[str, ...]:
    """Return the shares in a text such as "1/4" or "2/4,3/4", or MERGE alone."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in words if words != (MERGE,) else ():
        matched = _SHARE.fullmatch(word)
        if not matched or not 1 <= int(matched[1]) <= int(matched[2]) <= MAX_PARTS:
            raise argparse.ArgumentTypeError(
                f"{word!r} is neither a share (2/4 is the second of four; at most {MAX_PARTS} "
                f"shares) nor {MERGE!r}"
            )
    return words


def is_share(part: Sequence[str]) -> bool:
    """Return True if --part names shares to process, and False for a whole run or MERGE."""
    return bool(part) and tuple(part) != (MERGE,)


def corpus_fraction(part: Sequence[str]) -> float:
    """Return the fraction of the corpus that --part names; 1 for a whole run and for MERGE."""
    shares = map(share_bounds, part) if is_share(part) else [(Fraction(0), Fraction(1))]
    return min(1.0, float(sum(high - low for low, high in shares)))


def share_bounds(share: str) -> tuple[Fraction, Fraction]:
    """Return the start and end of the share I/N of a corpus, as fractions from 0 to 1."""
    index, num = map(int, share.split("/"))
    return Fraction(index - 1, num), Fraction(index, num)
