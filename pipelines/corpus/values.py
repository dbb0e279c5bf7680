"""Values of flags: shares, counts, lists, parts of a run."""

import argparse
import re
from collections.abc import Sequence
from fractions import Fraction


def fraction(text: str) -> float:
    """Return a number from 0 to 1 given as such or in per cent ("0.05", "5%")."""
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def count(text: str) -> int:
    """Return a whole number, with k, M or G for powers of ten ("100M")."""
    scale = {"k": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:], 1)
    value = int(text if scale == 1 else text[:-1]) * scale
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def positive(text: str) -> int:
    """Return a whole number of at least 1, written as for count()."""
    value = count(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def names(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list, each once, in the order given."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


MERGE = "merge"
"""Stands in place of shares for the run that makes the dataset of what they left."""

MOST_PARTS = 1000

_SHARE = re.compile(r"([0-9]+)/([0-9]+)")


def parse_part(text: str) -> tuple[str, ...]:
    """Return the shares that a person named, as in "1/4" or "2/4,3/4"; of "merge" that alone."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in words if words != (MERGE,) else ():
        matched = _SHARE.fullmatch(word)
        if not matched or not 1 <= int(matched[1]) <= int(matched[2]) <= MOST_PARTS:
            raise argparse.ArgumentTypeError(
                f"{word!r} is no share of at most {MOST_PARTS} (2/4 is the second of four), and "
                f"not {MERGE!r}"
            )
    return words


def is_share(part: Sequence[str]) -> bool:
    """Return whether these are shares to map, and not a whole run or its end."""
    return bool(part) and tuple(part) != (MERGE,)


def corpus_fraction(part: Sequence[str]) -> float:
    """Return how much of the corpus these shares are, at most; 1 for what is no share."""
    shares = map(share_bounds, part) if is_share(part) else [(Fraction(0), Fraction(1))]
    return min(1.0, float(sum(high - low for low, high in shares)))


def share_bounds(share: str) -> tuple[Fraction, Fraction]:
    """Return where share I/N of a corpus begins and ends, from 0 to 1."""
    index, num = map(int, share.split("/"))
    return Fraction(index - 1, num), Fraction(index, num)
