"""MinHash signatures: 14 bands that near-duplicates share, 112 bytes that tell how near they are.

Similarity is the Jaccard similarity of the sets of 5-grams. A text of which at least a fifth is in
scripts written without spaces (Chinese, Japanese, Thai, Lao, Burmese, Khmer) is a sequence of
characters, without white space; any other text is a sequence of words: what stands between ASCII
characters other than letters and digits, with ASCII letters in lower case.

The method is one-permutation hashing (Li, Owen, Zhang, NeurIPS 2012): the hash of a gram chooses
one of 112 slots and a value, and a slot keeps its least value. Slots without a gram copy from
others by optimal densification (Shrivastava, ICML 2017). Eight slots make a band, so two texts of
similarity s share a band with probability 1 - (1 - s**8)**14, as in FineWeb (Penedo et al., 2024).

A signature depends on its text alone, not on the texts signed together with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pipelines.dedup.exact import FoldedTexts

NUM_BANDS = 14
ROWS = 8
NUM_SLOTS = NUM_BANDS * ROWS
GRAM = 5
"""Units in a gram; a text of fewer units has no signature."""

PIECE_CHARACTERS = 32_768
"""A longer text is processed in pieces; the few grams that span a seam are left out."""

# numpy is fastest while the temporaries of a batch fit into the processor's cache.
_BATCH_CHARACTERS = 65_536
_TEXTS_AT_ONCE = 64

_BEFORE_END = np.arange(1, GRAM)

_U64 = np.uint64
_EMPTY = np.uint32(2**32 - 1)
# Odd numbers without structure: digits of pi, e, the golden ratio, the roots of 2, 3, 5 and 7.
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

    The bytes of unlike slots agree by chance once in 256 times. This is subtracted, so that the
    estimate for unlike texts is zero on average, and below zero for some. The standard error is
    sqrt(s * (1 - s) / 112), 0.043 at a similarity of 0.7.
    """
    equal = np.count_nonzero(one == other, axis=1) / NUM_SLOTS
    estimate: np.ndarray = (equal - 1 / 256) / (1 - 1 / 256)
    return estimate


def by_characters(codes: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return which texts (bool[n]) are sequences of characters, not of words.

    They are those of which at least a fifth is in scripts written without spaces.

    Args:
        codes: The texts back to back, code points, uint32[m].
        ends: Where each text ends, int64[n]; none is empty.
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
"""What each byte is taken for: letters in lower case, digits and bytes of other characters stay,
any other byte is a space."""


class Signer:
    """Signs texts; keeps the memory of its temporaries, a few MB, instead of reallocating it."""

    def __init__(self) -> None:
        # In words a character may take four bytes, and a piece has a line break.
        capacity = 5 * _BATCH_CHARACTERS + 2
        self._powers = _powers(_BYTE, capacity)
        self._inverses = _powers(pow(_BYTE, -1, 2**64), capacity)
        self._a, self._b, self._c = (np.empty(capacity, _U64) for _ in range(3))
        self._base = np.empty(capacity, _U64)

    def signatures(self, texts: Sequence[str]) -> Signatures:
        """Return the signatures of texts whose white space is folded."""
        # The last row takes what is not a gram.
        least = np.full((len(texts) + 1, NUM_SLOTS), _EMPTY)
        characters = _character_texts(texts)
        words = ((i, text) for i, text in enumerate(texts) if i not in characters)
        for owners, parts in _batches(words):
            self._add_words(least, owners, parts)
        for owners, codes in _batches(characters.items()):
            self._add_characters(least, owners, codes)
        return _signatures_of(least[:-1])

    def _add_words(self, least: np.ndarray, owners: list[int], parts: list[str]) -> None:
        """Add the grams of pieces of texts that are words; folded texts hold no line break."""
        raw = "\n".join(["", *parts, ""]).encode()
        breaks = np.flatnonzero(np.frombuffer(raw, np.uint8) == ord("\n"))
        text = np.frombuffer(raw.translate(_WORD_BYTES), np.uint8)
        spaces = text == ord(" ")
        # The last bytes before words and the last bytes of words, in turn.
        edges = np.flatnonzero(spaces[1:] != spaces[:-1])
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
        """Add the grams of pieces of texts that are characters, given as code points."""
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
        """Add the grams of runs of units: run i ends at ends[i] and belongs to text owners[i]."""
        num = len(units) - GRAM + 1
        if num < 1:
            return
        base = self._base[: len(units)]
        lengths = ends.copy()
        lengths[1:] -= ends[:-1]
        base[:] = np.repeat(np.array(owners, _U64) * _U64(NUM_SLOTS), lengths)
        # No gram begins at the last units of a run. Where the first runs are shorter than a gram,
        # the index is clipped to -1, the last unit of all, where no gram begins either.
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
        """Return a hash of every five consecutive units: a polynomial of them, mixed."""
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


class CompiledSigner:
    """Signs texts by native loops, with the same results; keeps the memory that these need."""

    def __init__(self) -> None:
        from pipelines.dedup import kernels  # noqa: PLC0415  imports numba

        self._sign = kernels.sign
        capacity = 4 * PIECE_CHARACTERS  # in UTF-8
        inverse = pow(_BYTE, -1, 2**64)
        self._tables = kernels.Tables(
            word_bytes=np.array([*_WORD_BYTES], np.uint8),
            powers=_powers(_BYTE, capacity + 1)[1:],
            inverses=_powers(inverse, capacity),
            probes=_PROBES,
            slot_factors=_SLOT_FACTORS,
            band_salts=_BAND_SALTS,
        )
        self._numbers = kernels.Numbers(_UNIT, _PAIR, _QUAD, _LAST, _MIX, _U64(PIECE_CHARACTERS))
        self._scratch = kernels.Scratch(
            sums=np.empty(capacity + 1, _U64),
            places=np.empty(capacity + 1, np.int64),
            units=np.empty(capacity + 1, _U64),
            least=np.empty(NUM_SLOTS, np.uint32),
        )

    def signatures(self, texts: FoldedTexts) -> Signatures:
        """Return the signatures of folded texts."""
        num = len(texts.ends)
        bands = np.zeros((num, NUM_BANDS), _U64)
        slots = np.zeros((num, NUM_SLOTS), np.uint8)
        signed = np.empty(num, bool)
        constant = self._tables, self._numbers, self._scratch
        self._sign(texts.data, texts.ends, *constant, bands, slots, signed)
        return Signatures(bands, slots, signed)


def _powers(base: int, num: int) -> np.ndarray:
    """Return base**i mod 2**64 for i < num, uint64[num]."""
    factors = np.full(num, base % 2**64, _U64)
    factors[0] = 1
    return np.cumprod(factors, dtype=_U64)


def _character_texts(texts: Sequence[str]) -> dict[int, np.ndarray]:
    """Return the code points of the texts that are sequences of characters, by index."""
    wide = [i for i, text in enumerate(texts) if not text.isascii()]
    characters: dict[int, np.ndarray] = {}
    for start in range(0, len(wide), _TEXTS_AT_ONCE):
        indices = wide[start : start + _TEXTS_AT_ONCE]
        codes = np.frombuffer("".join([texts[i] for i in indices]).encode("utf-32-le"), "<u4")
        ends = np.cumsum([len(texts[i]) for i in indices])
        chosen = by_characters(codes, ends).tolist()
        parts = np.split(codes, ends[:-1])
        characters |= {
            i: part for i, part, is_chosen in zip(indices, parts, chosen, strict=True) if is_chosen
        }
    return characters


def _batches(texts: Iterable[tuple[int, Text]]) -> Iterator[tuple[list[int], list[Text]]]:
    """Yield pieces of texts, each with the index of its text, in batches."""
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


def _signatures_of(least: np.ndarray) -> Signatures:
    """Return the signatures of texts with these least values (uint32[n, NUM_SLOTS])."""
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
    """Return the values (uint64) with each empty slot filled from another one.

    Each slot has a list of all slots in a fixed random order, the same for every text, and takes
    the value of the first that is filled.
    """
    filled = least != _EMPTY
    values = least.astype(_U64)
    rows, slots = np.nonzero(~filled)
    for attempt in range(_ATTEMPTS):
        sources = _PROBES[slots, attempt]
        hit = filled[rows, sources]
        values[rows[hit], slots[hit]] = least[rows[hit], sources[hit]]
        rows, slots = rows[~hit], slots[~hit]
    # What is left belongs to short texts: find the first filled slot of each list at once.
    sources = np.where(filled[rows], _RANKS[slots], np.uint8(255)).argmin(axis=1)
    values[rows, slots] = least[rows, sources]
    return values


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) of each value."""
    values = (values ^ (values >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> _U64(27))) * _U64(0x94D049BB133111EB)
    mixed: np.ndarray = values ^ (values >> _U64(31))
    return mixed


def _numbers(num: int, salt: np.uint64) -> np.ndarray:
    """Return fixed random numbers, uint64[num]."""
    return _mixed(np.arange(1, num + 1, dtype=_U64) * _QUAD + salt)


_ATTEMPTS = 6
_SLOT_FACTORS = _numbers(NUM_SLOTS, _PAIR) | _U64(1)
_BAND_SALTS = _numbers(NUM_BANDS, _LAST)
_PROBES = np.argsort(
    _numbers(NUM_SLOTS * NUM_SLOTS, _SLOT_SALT).reshape(NUM_SLOTS, NUM_SLOTS), axis=1, kind="stable"
)
"""For each slot, all slots in the order in which it takes values from them."""
_RANKS = np.argsort(_PROBES, axis=1).astype(np.uint8)
"""For each slot, the place of every slot in that order."""
