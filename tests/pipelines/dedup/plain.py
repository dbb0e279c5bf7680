"""Computes signatures in numpy, as the oracle of the kernels."""

from collections.abc import Sequence

import numpy as np

from pipelines.dedup.minhash import (
    FACTORS,
    NUM_BANDS,
    NUM_SLOTS,
    PIECE_CHARACTERS,
    ROWS_PER_BAND,
    Signatures,
    lookup_tables,
    mix,
)

GRAM = 5

_U64 = np.uint64
_EMPTY = np.uint32(2**32 - 1)
_TABLES = lookup_tables(4 * PIECE_CHARACTERS + 2)

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
    return codes.astype(_U64) * FACTORS.unit


def _word_units(text: str) -> np.ndarray:
    """Return, for each word, the sum of each byte times the next power of a number."""
    found = _TABLES.word_bytes[np.frombuffer(f" {text} ".encode(), np.uint8)]
    sums = np.cumsum(found * _TABLES.powers[: len(found)], dtype=_U64)
    spaces = found == ord(" ")
    # The offsets of the last bytes before words and the last bytes of words, in turn.
    edges = np.flatnonzero(spaces[1:] != spaces[:-1])
    before, last = edges[::2], edges[1::2]
    units: np.ndarray = (sums[last] - sums[before]) * _TABLES.inverses[before + 1] * FACTORS.unit
    return units


def _mixed_grams(units: np.ndarray) -> np.ndarray:
    """Return a hash of every five consecutive units: a mixed polynomial of the five."""
    if len(units) < GRAM:
        return np.zeros(0, _U64)
    pairs = units[:-1] * FACTORS.pair + units[1:]
    quads = pairs[:-2] * FACTORS.quad + pairs[2:]
    grams: np.ndarray = quads[:-1] * FACTORS.last + units[4:]
    grams ^= grams >> _U64(32)
    grams *= FACTORS.mix
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
            sources = _TABLES.probes[np.arange(NUM_SLOTS), filled[_TABLES.probes].argmax(axis=1)]
            row[:] = np.where(filled, row, row[sources])
    values *= _TABLES.slot_factors
    bands = np.zeros((len(least), NUM_BANDS), _U64)
    sums = values.reshape(-1, NUM_BANDS, ROWS_PER_BAND).sum(axis=2, dtype=_U64)
    bands[signed] = mix(sums + _TABLES.band_salts)
    slots = np.zeros((len(least), NUM_SLOTS), np.uint8)
    slots[signed] = values >> _U64(56)  # copies of a value differ between slots
    return Signatures(bands, slots, signed)
