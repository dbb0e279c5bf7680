"""Computes signatures in numpy, with constants of its own, as the oracle of the kernels."""

from collections.abc import Sequence

import numpy as np

from pipelines.dedup.minhash import (
    NUM_BANDS,
    NUM_SLOTS,
    PIECE_CHARACTERS,
    ROWS_PER_BAND,
    Signatures,
)

GRAM = 5

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


_WORD_BYTES = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() else 32 for byte in range(128)
) + bytes(range(128, 256))
"""The byte that replaces each byte: letters become lower case, digits and bytes of non-ASCII
characters stay, and any other byte becomes a space."""

_SCRIPTS = ((0x3000, 0xA000), (0x0E00, 0x0F00), (0x1000, 0x10A0), (0x1780, 0x1800))
"""The first code point, and the one after the last, of scripts written without spaces: Chinese and
Japanese; Thai and Lao; Burmese; Khmer."""


def sign(texts: Sequence[str]) -> Signatures:
    """Return the signatures of texts in which white space is already folded."""
    least = np.full((len(texts), NUM_SLOTS), _EMPTY)
    for values, text in zip(least, texts, strict=True):
        units_of = _character_units if by_characters(text) else _word_units
        for start in range(0, len(text), PIECE_CHARACTERS):
            grams = _mixed_grams(units_of(text[start : start + PIECE_CHARACTERS]))
            slots = (grams >> _U64(32)) * _U64(NUM_SLOTS) >> _U64(32)
            np.minimum.at(values, slots.astype(np.int64), grams.astype(np.uint32))
    return signatures_of(least)


def by_characters(text: str) -> bool:
    """Return whether a text is treated as a sequence of characters, not of words.

    This is so if at least a fifth of the text is in scripts written without spaces.
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
    """Return, for each word, the sum of each byte times the next power of a number."""
    found = np.frombuffer(f" {text} ".encode().translate(_WORD_BYTES), np.uint8)
    sums = np.cumsum(found * _powers(_BYTE, len(found)), dtype=_U64)
    spaces = found == ord(" ")
    # The offsets of the last bytes before words and the last bytes of words, in turn.
    edges = np.flatnonzero(spaces[1:] != spaces[:-1])
    before, last = edges[::2], edges[1::2]
    units: np.ndarray = (sums[last] - sums[before]) * _powers(_INVERSE, len(found))[before] * _UNIT
    return units


def _mixed_grams(units: np.ndarray) -> np.ndarray:
    """Return a hash of every five consecutive units: a mixed polynomial of the five."""
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
    """Return the signatures of texts whose minimum values are `least` (uint32[n, NUM_SLOTS])."""
    signed = (least != _EMPTY).any(axis=1)
    values = least[signed].astype(_U64)
    for row in values:
        filled = row != _EMPTY
        if not filled.all():
            # An empty slot takes the value of the first slot in its list that is filled.
            sources = _PROBES[np.arange(NUM_SLOTS), filled[_PROBES].argmax(axis=1)]
            row[:] = np.where(filled, row, row[sources])
    values *= _SLOT_FACTORS
    bands = np.zeros((len(least), NUM_BANDS), _U64)
    sums = values.reshape(-1, NUM_BANDS, ROWS_PER_BAND).sum(axis=2, dtype=_U64)
    bands[signed] = _mixed(sums + _BAND_SALTS)
    slots = np.zeros((len(least), NUM_SLOTS), np.uint8)
    slots[signed] = values >> _U64(56)  # copies of a value differ between slots
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
