"""The kernels that fold texts and sign them by MinHash (see exact.py and minhash.py).

Texts are UTF-8, back to back in one array, and are not decoded. Places in the array are uint64,
because an index that may be negative costs a comparison per byte.
"""
# ruff: noqa: PLR1714, PLR2004  bytes of UTF-8; sets of them compile slowly

from typing import NamedTuple

import numpy as np

from pipelines.compiled import kernel

KINDS = np.zeros(256, np.uint8)
"""The kind of each byte for `fold`: a space (1), a byte that may begin a longer space (2), or
neither (0)."""

KINDS[[code for code in range(128) if chr(code).isspace()]] = 1
KINDS[[0xC2, 0xE1, 0xE2, 0xE3]] = 2

_EMPTY = np.uint32(2**32 - 1)


class MinhashTables(NamedTuple):
    """The lookup tables of minhash.py."""

    word_bytes: np.ndarray
    """uint8[256], the byte that replaces each byte of a text of words."""
    powers: np.ndarray
    """uint64[n], the powers of the base of a word's polynomial, beginning with the first power."""
    inverses: np.ndarray
    """uint64[n], the powers of the inverse of that base, beginning with 1."""
    probes: np.ndarray
    """int64[slots, slots], the slots where each empty slot looks for a value, in order."""
    slot_factors: np.ndarray
    """uint64[slots], the factor by which each slot's value is multiplied."""
    band_salts: np.ndarray
    """uint64[bands], the number to which the values of each band's slots are added."""


class Factors(NamedTuple):
    """The factors of minhash.py and the maximum number of characters of a piece, all as uint64."""

    unit: np.uint64
    pair: np.uint64
    quad: np.uint64
    last: np.uint64
    mix: np.uint64
    piece: np.uint64


class MinhashScratch(NamedTuple):
    """Buffers for one piece of a text."""

    sums: np.ndarray
    """uint64[n + 1], the polynomial's sum where words begin and end; n as in MinhashTables."""
    places: np.ndarray
    """int64[n + 1], the places of these sums in the piece."""
    units: np.ndarray
    """uint64[n + 1], the units of the piece: hashes of its words or characters."""
    least: np.ndarray
    """uint32[slots], the smallest value of each slot."""


@kernel
def fold(
    data: np.ndarray, offsets: np.ndarray, kinds: np.ndarray, folded: np.ndarray, ends: np.ndarray
) -> None:
    """Write texts with each run of white space replaced by one space, or removed at either end.

    Args:
        data: The texts, uint8[m].
        offsets: The places where each text begins and the last one ends, int64[n + 1].
        kinds: uint8[256], KINDS.
        folded: The array for the folded texts, uint8[m + 1].
        ends: The array for the places where the folded texts end, int64[n].
    """
    one, two = np.uint64(1), np.uint64(2)
    end = np.uint64(0)
    for text in range(len(ends)):
        place, last = np.uint64(offsets[text]), np.uint64(offsets[text + 1])
        start = end
        after_space = one
        while place < last:
            byte = np.uint64(data[place])
            space = np.uint64(kinds[byte])
            if space == two:
                space = np.uint64(_is_wide_space(data, place))
                place += space if byte == np.uint64(0xC2) else two * space
            # Arithmetic is faster: a branch at every space would cost more than all the rest.
            folded[end] = byte - (byte - np.uint64(32)) * space
            end += one - (space & after_space)
            after_space = space
            place += one
        if end > start:
            end -= after_space
        ends[text] = end


@kernel
def _is_wide_space(data: np.ndarray, place: np.uint64) -> bool:
    """Return whether a character whose first byte is of kind 2 is white space."""
    first, second = data[place], data[place + np.uint64(1)]
    if first == 0xC2:  # U+0085, U+00A0
        return bool(second == 0x85 or second == 0xA0)
    third = data[place + np.uint64(2)]
    code = np.int64(first) << 16 | np.int64(second) << 8 | np.int64(third)
    return bool(
        0xE28080 <= code <= 0xE2808A  # U+2000 to U+200A
        or code == 0xE280A8  # U+2028
        or code == 0xE280A9  # U+2029
        or code == 0xE280AF  # U+202F
        or code == 0xE2819F  # U+205F
        or code == 0xE38080  # U+3000
        or code == 0xE19A80  # U+1680
    )


@kernel
def sign(  # noqa: PLR0913, PLR0917  tables, buffers and results
    folded: np.ndarray,
    ends: np.ndarray,
    tables: MinhashTables,
    numbers: Factors,
    scratch: MinhashScratch,
    bands: np.ndarray,
    slots: np.ndarray,
    signed: np.ndarray,
) -> None:
    """Write the signatures of folded texts; rows of texts that are not signed stay as they are.

    Args:
        folded: The texts, uint8[m].
        ends: The place where each text ends, int64[n].
        tables: The lookup tables.
        numbers: The factors.
        scratch: The buffers.
        bands: The array for the hashes of bands, uint64[n, bands].
        slots: The array for the bytes of slots, uint8[n, slots].
        signed: The array for whether each text is signed, bool[n].
    """
    least = scratch.least
    start = np.uint64(0)
    for text in range(len(ends)):
        end = np.uint64(ends[text])
        least[:] = _EMPTY
        characters = _by_characters(folded, start, end)
        while start < end:
            stop = _piece_end(folded, start, end, numbers.piece)
            if characters:
                num = _character_units(folded, start, stop, numbers.unit, scratch.units)
            else:
                num = _word_units(folded, start, stop, tables, numbers.unit, scratch)
            _add_grams(scratch.units, num, numbers, least)
            start = stop
        signed[text] = _write(least, tables, bands[text], slots[text])


@kernel
def _by_characters(folded: np.ndarray, start: np.uint64, end: np.uint64) -> bool:
    """Return whether a text is a sequence of characters, judged by the characters' first bytes."""
    one, two = np.uint64(1), np.uint64(2)
    inside = np.int64(0)
    wide = np.int64(0)
    for place in range(start, end):
        inside += (folded[place] & 0xC0) == 0x80
        wide += (folded[place] >= 0xE3) & (folded[place] <= 0xE9)  # U+3000 to U+9FFF
    if not inside:
        return False
    num = np.int64(end - start) - inside
    if 5 * wide < num:
        for place in range(start, end):
            first = folded[place]
            if first == 0xE0:
                wide += 0xB8 <= folded[place + one] <= 0xBB  # U+0E00 to U+0EFF
            elif first == 0xE1:
                code = np.int64(folded[place + one]) << 8 | np.int64(folded[place + two])
                # U+1000 to U+109F, U+1780 to U+17FF
                wide += 0x8080 <= code < 0x82A0 or 0x9E80 <= code <= 0x9FBF
    return bool(5 * wide >= num)


@kernel
def _piece_end(folded: np.ndarray, start: np.uint64, end: np.uint64, piece: np.uint64) -> np.uint64:
    """Return the end of a piece of a text: after `piece` characters, or at the end of the text."""
    left = piece
    while left and start < end:
        step = min(left, end - start)
        for place in range(start, start + step):
            left -= np.uint64((folded[place] & 0xC0) != 0x80)
        start += step
    # The last byte that was counted may begin a character of several bytes.
    while start < end and (folded[start] & 0xC0) == 0x80:
        start += np.uint64(1)
    return start


@kernel
def _character_units(
    folded: np.ndarray, start: np.uint64, end: np.uint64, factor: np.uint64, units: np.ndarray
) -> np.uint64:
    """Write the units of a piece of characters, and return their number."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    low = np.uint64(0x3F)
    num = np.uint64(0)
    place = start
    while place < end:
        code = np.uint64(folded[place])
        if code < np.uint64(0x80):
            units[num] = code * factor
            num += np.uint64(code != np.uint64(32))
            place += one
            continue
        second = np.uint64(folded[place + one]) & low
        if code < np.uint64(0xE0):
            code = (code & np.uint64(0x1F)) << np.uint64(6) | second
            place += two
        elif code < np.uint64(0xF0):
            third = np.uint64(folded[place + two]) & low
            code = (code & np.uint64(0xF)) << np.uint64(12) | second << np.uint64(6) | third
            place += three
        else:
            third = np.uint64(folded[place + two]) & low
            fourth = np.uint64(folded[place + three]) & low
            code = (code & np.uint64(0x7)) << np.uint64(18) | second << np.uint64(12)
            code |= third << np.uint64(6) | fourth
            place += np.uint64(4)
        units[num] = code * factor
        num += one
    return num


@kernel
def _word_units(
    folded: np.ndarray,
    start: np.uint64,
    end: np.uint64,
    tables: MinhashTables,
    factor: np.uint64,
    scratch: MinhashScratch,
) -> np.uint64:
    """Write the units of a piece of words, and return their number.

    The sum of the polynomial is stored where words begin and end, so that no branch depends on the
    text: a processor cannot predict where words end.
    """
    zero, one = np.uint64(0), np.uint64(1)
    sums, places, powers = scratch.sums, scratch.places, tables.powers
    space = np.uint64(32)
    total = edges = zero
    after_space = one
    for index in range(end - start):
        byte = np.uint64(tables.word_bytes[folded[start + index]])
        is_space = np.uint64(byte == space)
        sums[edges] = total
        places[edges] = index
        edges += is_space ^ after_space
        after_space = is_space
        total += byte * powers[index]
    sums[edges] = total
    edges += one - after_space
    num = edges >> one
    for word in range(num):
        begin = word << one
        units = (sums[begin + one] - sums[begin]) * tables.inverses[places[begin]]
        scratch.units[word] = units * factor
    return num


@kernel
def _add_grams(units: np.ndarray, num: np.uint64, numbers: Factors, least: np.ndarray) -> None:
    """Update the smallest value of each slot with the hashes of all 5-grams of units."""
    one, high = np.uint64(1), np.uint64(32)
    num_slots = np.uint64(len(least))
    if num < np.uint64(5):
        return
    for first in range(num - np.uint64(4)):
        third = first + np.uint64(2)
        gram = (units[first] * numbers.pair + units[first + one]) * numbers.quad
        gram += units[third] * numbers.pair + units[third + one]
        gram = gram * numbers.last + units[first + np.uint64(4)]
        gram ^= gram >> high
        gram *= numbers.mix
        gram ^= gram >> np.uint64(29)
        slot = (gram >> high) * num_slots >> high
        least[slot] = min(least[slot], np.uint32(gram))


@kernel
def _write(least: np.ndarray, tables: MinhashTables, bands: np.ndarray, slots: np.ndarray) -> bool:
    """Write a text's signature from the slots' smallest values; return False if there are none."""
    smallest = _EMPTY
    for value in least:
        smallest = min(smallest, value)
    if smallest == _EMPTY:
        return False
    rows = len(slots) // len(bands)
    for band in range(len(bands)):
        total = tables.band_salts[band]
        for slot in range(band * rows, (band + 1) * rows):
            attempt = 0
            source = slot
            while least[source] == _EMPTY:
                source = tables.probes[slot, attempt]
                attempt += 1
            value = np.uint64(least[source]) * tables.slot_factors[slot]
            slots[slot] = value >> np.uint64(56)
            total += value
        bands[band] = _mixed(total)
    return True


@kernel
def _mixed(value: np.uint64) -> np.uint64:
    """Return a value mixed by the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
