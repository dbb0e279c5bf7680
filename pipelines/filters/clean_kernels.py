"""The loop that finds the texts that a repair may change, in UTF-8, as the patterns of clean.py do.

Places are uint64: an index that may be negative costs a comparison for each byte.
"""
# ruff: noqa: PLR2004  bytes of UTF-8

import numpy as np

from pipelines.compiled import kernel

LOOK_UP, CONTROL, AMPERSAND = 1, 2, 3
"""Kinds of bytes: the first one of a character whose classes matter, one that is suspect by itself,
one that may begin an entity. Other bytes, of the kind 0, mean nothing here."""

FIRST, ALONE, SYMBOL, ANY, QUOTE, CAPITAL, SMALL = (1 << bit for bit in range(7))
"""Classes of characters, as clean.py names them; SMALL also has its category lower_common."""

_DIGITS_AND_LETTERS = np.array([code < 128 and chr(code).isalnum() for code in range(256)])
_MOST = np.uint64(24)


@kernel
def find_suspects(
    data: np.ndarray, offsets: np.ndarray, kinds: np.ndarray, classes: np.ndarray, found: np.ndarray
) -> None:
    """Find the texts with a suspect sequence or an entity.

    Args:
        data: The texts, uint8[m].
        offsets: Where each of them begins, and where the last one ends, int64[n + 1].
        kinds: uint8[256], the kind of each byte.
        classes: uint8[65536], the classes of each character of the basic plane.
        found: bool[n], for the result.
    """
    for text in range(len(found)):
        start, end = np.uint64(offsets[text]), np.uint64(offsets[text + 1])
        found[text] = False
        for index in range(start, end):
            place = np.uint64(index)
            kind = kinds[data[place]]
            if kind and (
                kind == CONTROL
                or (kind == LOOK_UP and _is_suspect(data, start, place, end, classes))
                or (kind == AMPERSAND and _is_entity(data, place, end))
            ):
                found[text] = True
                break


@kernel
def _is_suspect(
    data: np.ndarray, start: np.uint64, place: np.uint64, end: np.uint64, classes: np.ndarray
) -> bool:
    """Return whether the pattern of suspects matches at a place."""
    one, two = np.uint64(1), np.uint64(2)
    this = _classes_at(data, place, classes)
    if not this & FIRST:
        return False
    if this & ALONE:
        return True
    before, after = 0, 0
    following = place + (two if data[place] < 0xE0 else two + one)
    if following < end:
        after = _classes_at(data, following, classes)
    if place > start:
        place -= one
        while (data[place] & 0xC0) == 0x80:
            place -= one
        before = _classes_at(data, place, classes)
    return bool(
        (this & SYMBOL and (before | after) & ANY)
        or after & (QUOTE | CAPITAL)
        or before & QUOTE
        or (this & CAPITAL and before & SMALL)
    )


@kernel
def _classes_at(data: np.ndarray, place: np.uint64, classes: np.ndarray) -> int:
    """Return the classes of the character that begins at a place."""
    code = np.uint64(data[place])
    low = np.uint64(0x3F)
    if code >= np.uint64(0xF0):
        return 0
    if code >= np.uint64(0x80):
        second = np.uint64(data[place + np.uint64(1)]) & low
        if code < np.uint64(0xE0):
            code = (code & np.uint64(0x1F)) << np.uint64(6) | second
        else:
            third = np.uint64(data[place + np.uint64(2)]) & low
            code = (code & np.uint64(0xF)) << np.uint64(12) | second << np.uint64(6) | third
    return int(classes[code])


@kernel
def _is_entity(data: np.ndarray, place: np.uint64, end: np.uint64) -> bool:
    """Return whether an entity begins at an ampersand."""
    one = np.uint64(1)
    place += one
    if place < end and data[place] == 0x23:  # #
        place += one
    start = place
    while place < end and _DIGITS_AND_LETTERS[data[place]]:
        place += one
    num = place - start
    return bool(place < end and data[place] == 0x3B and one <= num <= _MOST)  # ;
