"""Lines, paragraphs and sentences as ranges of code points; characters by what they are."""

import re
from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel, kernel_in_place
from pipelines.quality.spans import code_points

Codes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]
"""By code point, bits of what the character is."""

NUM_CODE_POINTS = 0x110000

# Odd numbers with bits all over: 2**64 over the golden ratio, and FNV's prime for 64 bits mixed in.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0xCBF29CE484222325)
_HALF = np.uint64(32)
_ONE = np.uint64(1)


@kernel_in_place
def hash_range(codes: Codes, start: int, end: int) -> np.uint64:
    """Return a hash of a range of code points, uint64, good in its upper half."""
    # Indices of a slice that count up from 0 are known not to be negative, which saves much.
    part = codes[start:end]
    key, other = _SEED ^ np.uint64(len(part)), _FACTOR
    paired = len(part) & ~3
    for at in range(0, paired, 4):
        key = (key ^ (np.uint64(part[at]) | (np.uint64(part[at + 1]) << _HALF))) * _FACTOR
        pair = np.uint64(part[at + 2]) | (np.uint64(part[at + 3]) << _HALF)
        other = (other ^ pair) * _FACTOR
    key ^= (other >> _HALF) | (other << _HALF)
    for at in range(paired, len(part)):
        key = (key ^ np.uint64(part[at])) * _FACTOR
    return (key ^ (key >> _HALF)) * _FACTOR


@kernel_in_place
def equal_ranges(codes: Codes, first: int, second: int, length: int) -> bool:
    """Return whether the same code points stand at two places."""
    one, other = codes[first : first + length], codes[second : second + length]
    for at in range(length):  # noqa: SIM110  not a generator in compiled code
        if one[at] != other[at]:
            return False
    return True


@kernel
def count_repeats(codes: Codes, starts: Places, ends: Places) -> tuple[int, int]:
    """Return how many ranges equal an earlier one, and the characters in them.

    It does for ranges what `repetition.count_repeats` does for strings: hashes find candidates, and
    code points decide.

    Args:
        codes: Code points of a text.
        starts: int64[n]: where each range begins; ranges may overlap, and be empty.
        ends: int64[n]: where it ends.
    """
    num_ranges = len(starts)
    bits = 2
    while (1 << bits) < 2 * num_ranges:
        bits += 1
    slots = np.full(1 << bits, -1, np.int32)  # the first range of each kind
    keys = np.empty(num_ranges, np.uint64)
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    num_repeats = num_chars = 0
    for index in range(num_ranges):
        start, length = starts[index], ends[index] - starts[index]
        key = hash_range(codes, start, start + length)
        keys[index] = key
        slot = key >> shift
        while slots[slot] >= 0:
            other = slots[slot]
            if (
                keys[other] == key
                and ends[other] - starts[other] == length
                and equal_ranges(codes, starts[other], start, length)
            ):
                num_repeats += 1
                num_chars += length
                break
            slot = (slot + _ONE) & mask
        else:
            slots[slot] = index
    return num_repeats, num_chars


def text_of(codes: Codes, *, is_ascii: bool = False) -> str:
    """Return the text of code points, which is the inverse of `words.code_points`.

    Args:
        codes: The code points.
        is_ascii: Whether all are known to be of ASCII, which takes half the time.
    """
    if is_ascii:
        return codes.astype(np.uint8).tobytes().decode("ascii")
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


@cache
def every_character() -> str:
    """Return all characters in the order of their code points, surrogates among them."""
    return text_of(np.arange(NUM_CODE_POINTS, dtype=np.uint32))


def matching(pattern: str) -> str:
    r"""Return the characters that a regular expression such as \s matches."""
    return "".join(re.findall(pattern, every_character()))


def character_bits(*classes: Iterable[str]) -> Kinds:
    """Return uint8[NUM_CODE_POINTS]: bit i is set for the characters of the i-th class."""
    bits = np.zeros(NUM_CODE_POINTS, np.uint8)
    for index, characters in enumerate(classes):
        bits[code_points("".join(characters))] |= 1 << index
    return bits
