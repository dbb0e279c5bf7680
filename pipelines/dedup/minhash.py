"""MinHash signatures: 14 bands that near-duplicates share, and 112 bytes that say how near.

The similarity meant is the Jaccard similarity of the sets of 5-grams. A text whose UTF-8 bytes are
mostly of scripts that are written without spaces (Chinese, Japanese, Thai, Lao, Burmese, Khmer) is
a run of characters, white space left out; any other text is a run of words: what stands between
ASCII characters other than letters and digits, capital ASCII letters made small.

The method is one-permutation hashing (Li, Owen, Zhang, NeurIPS 2012): the hash of a gram chooses
one of 112 slots and a value, a slot keeps its least value. Slots without a gram copy from others by
optimal densification (Shrivastava, ICML 2017). Eight slots make a band, so two texts of similarity
s share a band with probability 1 - (1 - s**8)**14, as in FineWeb (Penedo et al., 2024).

A signature depends on its text alone, whatever is signed beside it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

NUM_BANDS = 14
ROWS = 8
NUM_SLOTS = NUM_BANDS * ROWS
GRAM = 5
"""Units in a gram; a text of fewer has no signature."""

PIECE_CHARACTERS = 32_768
"""A longer text is taken in pieces; the few grams that span a seam are left out."""

# Where the temporaries of this many fit into the processor's cache, numpy is fastest.
_BATCH_CHARACTERS = 65_536
_TEXTS_AT_ONCE = 64

_BEFORE_END = np.arange(1, GRAM)

_U64 = np.uint64
_EMPTY = np.uint32(2**32 - 1)
# Odd, without structure: digits of pi, e, the golden ratio and the square roots of 2, 3, 5, 7.
_UNIT = _U64(0x243F6A8885A308D3)
_PAIR = _U64(0xB7E151628AED2A6B)
_QUAD = _U64(0x9E3779B97F4A7C15)
_LAST = _U64(0x6A09E667F3BCC909)
_MIX = _U64(0xBB67AE8584CAA73B)
_BYTE = 0x3C6EF372FE94F82B
_SLOT_SALT = _U64(0xA54FF53A5F1D36F1)


Text = TypeVar("Text", str, np.ndarray)


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of n texts; rows of texts that are not signed are zero.

    `bands` is uint64[n, NUM_BANDS], `slots` uint8[n, NUM_SLOTS], `signed` bool[n].
    """

    bands: np.ndarray
    slots: np.ndarray
    signed: np.ndarray


def similarity(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the estimated similarity (float64[n]) of rows of slots (uint8[n, NUM_SLOTS]).

    Unlike slots agree in their byte by chance once in 256 times; that is taken off, so unlike texts
    come out at zero on average, some below. The standard error is sqrt(s * (1 - s) / 112), 0.043 at
    a similarity of 0.7.
    """
    alike = np.count_nonzero(one == other, axis=1) / NUM_SLOTS
    found: np.ndarray = (alike - 1 / 256) / (1 - 1 / 256)
    return found


def by_characters(codes: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return which texts (bool[n]) are runs of characters, not of words.

    A text is if at least a fifth of it is of scripts written without spaces.

    Args:
        codes: The texts back to back, code points, uint32[m].
        ends: Where each one ends, int64[n]; none is empty.
    """
    need = np.diff(ends, prepend=0) / 5
    num = _count(codes, ends, first=0x3000, end=0xA000)  # Chinese and Japanese
    if (num < need).any():
        num += _count(codes, ends, first=0x0E00, end=0x0F00)  # Thai and Lao
        num += _count(codes, ends, first=0x1000, end=0x10A0)  # Burmese
        num += _count(codes, ends, first=0x1780, end=0x1800)  # Khmer
    enough: np.ndarray = num >= need
    return enough


def _count(codes: np.ndarray, ends: np.ndarray, *, first: int, end: int) -> np.ndarray:
    """Return how many code points of each text lie in a range."""
    inside = codes - np.uint32(first) < np.uint32(end - first)
    starts = np.concatenate([[0], ends[:-1]])
    counts: np.ndarray = np.add.reduceat(inside, starts, dtype=np.int64)
    return counts


_WORD_BYTES = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() else 32 for byte in range(128)
) + bytes(range(128, 256))
"""What each byte counts as: small letters, digits, bytes of other characters, else a space."""


class Signer:
    """Signs texts; holds memory for its temporaries, a few MB, so that none is allocated twice."""

    def __init__(self) -> None:
        # In words a character may take four bytes, and a piece a line break.
        capacity = 5 * _BATCH_CHARACTERS + 2
        self._powers = _powers(_BYTE, capacity)
        self._inverses = _powers(pow(_BYTE, -1, 2**64), capacity)
        self._a, self._b, self._c = (np.empty(capacity, _U64) for _ in range(3))
        self._base = np.empty(capacity, _U64)

    def signatures(self, texts: Sequence[str]) -> Signatures:
        """Return the signatures of texts whose white space is folded."""
        least = np.full((len(texts) + 1, NUM_SLOTS), _EMPTY)  # the last row takes what is no gram
        runs = _runs(texts)
        words = ((at, text) for at, text in enumerate(texts) if at not in runs)
        for owners, parts in _batches(words):
            self._add_words(least, owners, parts)
        for owners, codes in _batches(runs.items()):
            self._add_characters(least, owners, codes)
        return _finished(least[:-1])

    def _add_words(self, least: np.ndarray, owners: list[int], parts: list[str]) -> None:
        """Take the grams of words of pieces of texts; folded texts hold no line break."""
        joined = "\n".join(["", *parts, ""]).encode()
        breaks = np.flatnonzero(np.frombuffer(joined, np.uint8) == ord("\n"))
        text = np.frombuffer(joined.translate(_WORD_BYTES), np.uint8)
        spaces = text == ord(" ")
        edges = np.flatnonzero(spaces[1:] != spaces[:-1])  # last bytes before words, and of words
        before, last = edges[::2], edges[1::2]
        sums = self._a[: len(text)]
        scaled = self._b[: len(text)]
        np.multiply(text, self._powers[: len(text)], out=scaled, dtype=_U64)
        np.cumsum(scaled, out=sums)
        units = self._c[: len(before)]
        np.subtract(sums[last], sums[before], out=units)
        units *= self._inverses[before]
        units *= _UNIT
        self._add_grams(least, owners, units, np.searchsorted(before, breaks[1:]))

    def _add_characters(
        self, least: np.ndarray, owners: list[int], parts: list[np.ndarray]
    ) -> None:
        """Take the grams of characters of pieces of texts, code points."""
        codes = np.concatenate(parts)
        ends = np.cumsum([len(part) for part in parts])
        dense = codes != ord(" ")
        ends -= np.searchsorted(np.flatnonzero(~dense), ends)
        codes = codes[dense]
        units = self._c[: len(codes)]
        np.multiply(codes, _UNIT, out=units, dtype=_U64)
        self._add_grams(least, owners, units, ends)

    def _add_grams(
        self, least: np.ndarray, owners: list[int], units: np.ndarray, ends: np.ndarray
    ) -> None:
        """Take the grams of runs of units: run i ends at ends[i] and is of text owners[i]."""
        num = len(units) - GRAM + 1
        if num < 1:
            return
        base = self._base[: len(units)]
        lengths = ends.copy()
        lengths[1:] -= ends[:-1]
        base[:] = np.repeat(np.array(owners, _U64) * _U64(NUM_SLOTS), lengths)
        # No gram begins at the last units of a run; nor at the last of all, which stands for those
        # that short first runs do not have.
        seams = np.maximum(ends[:, None] - _BEFORE_END, -1)
        base[seams] = least.size - NUM_SLOTS
        grams = self._mixed_grams(units)
        halves = grams.view(np.uint32).reshape(-1, 2)  # little-endian: the low one first
        slots = self._b[:num]
        np.multiply(halves[:, 1], _U64(NUM_SLOTS), out=slots, dtype=_U64)
        slots >>= _U64(32)
        slots += base[:num]
        np.minimum.at(least.reshape(-1), slots.view(np.int64), halves[:, 0])

    def _mixed_grams(self, units: np.ndarray) -> np.ndarray:
        """Return a hash of every five neighbours: a polynomial of the units, mixed."""
        size = len(units)
        pairs, quads = self._a[: size - 1], self._b[: size - 3]
        np.multiply(units[:-1], _PAIR, out=pairs)
        pairs += units[1:]
        np.multiply(pairs[:-2], _QUAD, out=quads)
        quads += pairs[2:]
        grams, shifted = self._a[: size - 4], self._b[: size - 4]
        np.multiply(quads[:-1], _LAST, out=grams)
        grams += units[4:]
        np.right_shift(grams, _U64(32), out=shifted)
        grams ^= shifted
        grams *= _MIX
        np.right_shift(grams, _U64(29), out=shifted)
        grams ^= shifted
        return grams


def _powers(base: int, num: int) -> np.ndarray:
    """Return base**i mod 2**64 for i < num, uint64[num]."""
    factors = np.full(num, base % 2**64, _U64)
    factors[0] = 1
    return np.cumprod(factors, dtype=_U64)


def _runs(texts: Sequence[str]) -> dict[int, np.ndarray]:
    """Return the code points of the texts that are runs of characters, by number."""
    wide = [at for at, text in enumerate(texts) if not text.isascii()]
    found: dict[int, np.ndarray] = {}
    for start in range(0, len(wide), _TEXTS_AT_ONCE):
        numbers = wide[start : start + _TEXTS_AT_ONCE]
        joined = "".join([texts[at] for at in numbers])
        codes = np.frombuffer(joined.encode("utf-32-le"), "<u4")
        ends = np.cumsum([len(texts[at]) for at in numbers])
        chosen = by_characters(codes, ends).tolist()
        runs = np.split(codes, ends[:-1])
        found.update(itertools.compress(zip(numbers, runs, strict=True), chosen))
    return found


def _batches(texts: Iterable[tuple[int, Text]]) -> Iterator[tuple[list[int], list[Text]]]:
    """Yield pieces of texts, each with its owner, by the batch."""
    owners: list[int] = []
    parts: list[Text] = []
    size = 0
    for owner, text in texts:
        for start in range(0, len(text), PIECE_CHARACTERS):
            part = text if len(text) <= PIECE_CHARACTERS else text[start : start + PIECE_CHARACTERS]
            if parts and size + len(part) > _BATCH_CHARACTERS:
                yield owners, parts
                owners, parts, size = [], [], 0
            owners.append(owner)
            parts.append(part)
            size += len(part)
    if parts:
        yield owners, parts


def _finished(least: np.ndarray) -> Signatures:
    """Return the signatures of the least values (uint32[n, NUM_SLOTS]) of texts."""
    signed = (least != _EMPTY).any(axis=1)
    values = _densified(least[signed])
    values *= _SLOT_FACTORS
    bands = np.zeros((len(least), NUM_BANDS), _U64)
    sums = values.reshape(-1, NUM_BANDS, ROWS).sum(axis=2, dtype=_U64)
    bands[signed] = _mixed(sums + _BAND_SALTS)
    slots = np.zeros((len(least), NUM_SLOTS), np.uint8)
    slots[signed] = values >> _U64(56)  # copies of a value differ from slot to slot
    return Signatures(bands, slots, signed)


def _densified(least: np.ndarray) -> np.ndarray:
    """Return the values (uint64) with each empty slot filled from one that is not.

    Each slot has a list of all others in a fixed random order, and takes from the first that is
    filled. Every text has the same lists.
    """
    filled = least != _EMPTY
    values = least.astype(_U64)
    rows, slots = np.nonzero(~filled)
    for attempt in range(_ATTEMPTS):
        sources = _PROBES[slots, attempt]
        hit = filled[rows, sources]
        values[rows[hit], slots[hit]] = least[rows[hit], sources[hit]]
        rows, slots = rows[~hit], slots[~hit]
    # What is left is of short texts: the first filled slot of each list, at once.
    found = np.where(filled[rows], _RANKS[slots], np.uint8(255)).argmin(axis=1)
    values[rows, slots] = least[rows, found]
    return values


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) of each value."""
    values = (values ^ (values >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> _U64(27))) * _U64(0x94D049BB133111EB)
    mixed: np.ndarray = values ^ (values >> _U64(31))
    return mixed


def _numbers(num: int, salt: np.uint64) -> np.ndarray:
    """Return random numbers, uint64[num], the same for ever."""
    return _mixed(np.arange(1, num + 1, dtype=_U64) * _QUAD + salt)


_ATTEMPTS = 6
_SLOT_FACTORS = _numbers(NUM_SLOTS, _PAIR) | _U64(1)
_BAND_SALTS = _numbers(NUM_BANDS, _LAST)
_PROBES = np.argsort(
    _numbers(NUM_SLOTS * NUM_SLOTS, _SLOT_SALT).reshape(NUM_SLOTS, NUM_SLOTS), axis=1, kind="stable"
)
"""Of each slot, all slots in the order in which it asks them."""
_RANKS = np.argsort(_PROBES, axis=1).astype(np.uint8)
"""Of each slot, the place of every slot in that order."""
