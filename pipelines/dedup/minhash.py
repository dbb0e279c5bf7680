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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.dedup.exact import FoldedTexts

NUM_BANDS = 14
ROWS = 8
NUM_SLOTS = NUM_BANDS * ROWS
GRAM = 5
"""Units in a gram; a text of fewer units has no signature."""

PIECE_CHARACTERS = 32_768
"""A longer text is processed in pieces; the few grams that span a seam are left out."""

_U64 = np.uint64
_EMPTY = np.uint32(2**32 - 1)
# Odd numbers without structure: digits of pi, e, the golden ratio, the roots of 2, 3, 5 and 7.
_UNIT = _U64(0x243F6A8885A308D3)
_PAIR = _U64(0xB7E151628AED2A6B)
_QUAD = _U64(0x9E3779B97F4A7C15)
_LAST = _U64(0x6A09E667F3BCC909)
_MIX = _U64(0xBB67AE8584CAA73B)
_BYTE = 0x3C6EF372FE94F82B
_INVERSE = pow(_BYTE, -1, 2**64)
_SLOT_SALT = _U64(0xA54FF53A5F1D36F1)


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of n texts; rows of texts that are not signed are zero.

    `bands` is uint64[n, NUM_BANDS], `slots` uint8[n, NUM_SLOTS], `signed` bool[n].
    """

    bands: np.ndarray
    slots: np.ndarray
    signed: np.ndarray

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """All of them."""
        return self.bands, self.slots, self.signed


def similarity(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the estimated similarity (float64[n]) of rows of slots (uint8[n, NUM_SLOTS]).

    The bytes of unlike slots agree by chance once in 256 times. This is subtracted, so that the
    estimate for unlike texts is zero on average, and below zero for some. The standard error is
    sqrt(s * (1 - s) / 112), 0.043 at a similarity of 0.7.
    """
    equal = np.count_nonzero(one == other, axis=1) / NUM_SLOTS
    estimate: np.ndarray = (equal - 1 / 256) / (1 - 1 / 256)
    return estimate


_WORD_BYTES = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() else 32 for byte in range(128)
) + bytes(range(128, 256))
"""What each byte is taken for: letters in lower case, digits and bytes of other characters stay,
any other byte is a space."""

_SCRIPTS = ((0x3000, 0xA000), (0x0E00, 0x0F00), (0x1000, 0x10A0), (0x1780, 0x1800))
"""First code points, and those after the last, of scripts written without spaces: Chinese and
Japanese; Thai and Lao; Burmese; Khmer."""


def sign(texts: Sequence[str]) -> Signatures:
    """Return the signatures of texts whose white space is folded: what signatures are, in numpy."""
    least = np.full((len(texts), NUM_SLOTS), _EMPTY)
    for values, text in zip(least, texts, strict=True):
        units_of = _character_units if by_characters(text) else _word_units
        for start in range(0, len(text), PIECE_CHARACTERS):
            grams = _mixed_grams(units_of(text[start : start + PIECE_CHARACTERS]))
            slots = (grams >> _U64(32)) * _U64(NUM_SLOTS) >> _U64(32)
            np.minimum.at(values, slots.astype(np.int64), grams.astype(np.uint32))
    return signatures_of(least)


def by_characters(text: str) -> bool:
    """Return whether a text is a sequence of characters, not of words.

    It is if at least a fifth of it is in scripts written without spaces.
    """
    if text.isascii():
        return False
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
    num = sum(int(((codes >= first) & (codes < end)).sum()) for first, end in _SCRIPTS)
    return 5 * num >= len(codes)


def _character_units(text: str) -> np.ndarray:
    codes = np.frombuffer(text.replace(" ", "").encode("utf-32-le"), "<u4")
    return codes.astype(_U64) * _UNIT


def _word_units(text: str) -> np.ndarray:
    """Return for each word the sum of its bytes times the powers of a number, from the first on."""
    found = np.frombuffer(f" {text} ".encode().translate(_WORD_BYTES), np.uint8)
    sums = np.cumsum(found * _powers(_BYTE, len(found)), dtype=_U64)
    spaces = found == ord(" ")
    # The last bytes before words and the last bytes of words, in turn.
    edges = np.flatnonzero(spaces[1:] != spaces[:-1])
    before, last = edges[::2], edges[1::2]
    units: np.ndarray = (sums[last] - sums[before]) * _powers(_INVERSE, len(found))[before] * _UNIT
    return units


def _mixed_grams(units: np.ndarray) -> np.ndarray:
    """Return a hash of every five consecutive units: a polynomial of them, mixed."""
    if len(units) < GRAM:
        return np.zeros(0, _U64)
    pairs = units[:-1] * _PAIR + units[1:]
    quads = pairs[:-2] * _QUAD + pairs[2:]
    grams: np.ndarray = quads[:-1] * _LAST + units[4:]
    grams ^= grams >> _U64(32)
    grams *= _MIX
    grams ^= grams >> _U64(29)
    return grams


def signatures_of(least: np.ndarray) -> Signatures:
    """Return the signatures of texts with these least values (uint32[n, NUM_SLOTS])."""
    signed = (least != _EMPTY).any(axis=1)
    values = least[signed].astype(_U64)
    for row in values:
        filled = row != _EMPTY
        if not filled.all():
            # An empty slot takes the value of the first that is filled in its list.
            sources = _PROBES[np.arange(NUM_SLOTS), filled[_PROBES].argmax(axis=1)]
            row[:] = np.where(filled, row, row[sources])
    values *= _SLOT_FACTORS
    bands = np.zeros((len(least), NUM_BANDS), _U64)
    sums = values.reshape(-1, NUM_BANDS, ROWS).sum(axis=2, dtype=_U64)
    bands[signed] = _mixed(sums + _BAND_SALTS)
    slots = np.zeros((len(least), NUM_SLOTS), np.uint8)
    slots[signed] = values >> _U64(56)  # copies of a value differ from slot to slot
    return Signatures(bands, slots, signed)


class Signer:
    """Signs texts by native loops, with the results of sign(); keeps the memory they need."""

    def __init__(self) -> None:
        from pipelines.dedup import kernels  # noqa: PLC0415  imports numba

        self._sign = kernels.sign
        capacity = 4 * PIECE_CHARACTERS  # in UTF-8
        self._tables = kernels.Tables(
            word_bytes=np.array([*_WORD_BYTES], np.uint8),
            powers=_powers(_BYTE, capacity + 1)[1:],
            inverses=_powers(_INVERSE, capacity),
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


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) of each value."""
    values = (values ^ (values >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> _U64(27))) * _U64(0x94D049BB133111EB)
    mixed: np.ndarray = values ^ (values >> _U64(31))
    return mixed


def _numbers(num: int, salt: np.uint64) -> np.ndarray:
    """Return fixed random numbers, uint64[num]."""
    return _mixed(np.arange(1, num + 1, dtype=_U64) * _QUAD + salt)


_SLOT_FACTORS = _numbers(NUM_SLOTS, _PAIR) | _U64(1)
_BAND_SALTS = _numbers(NUM_BANDS, _LAST)
_PROBES = np.argsort(
    _numbers(NUM_SLOTS * NUM_SLOTS, _SLOT_SALT).reshape(NUM_SLOTS, NUM_SLOTS), axis=1, kind="stable"
)
"""For each slot, all slots in the order in which it takes values from them."""
