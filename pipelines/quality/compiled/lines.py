"""Lines, paragraphs and sentences as ranges of code points; characters by what they are."""

import re
from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.words import code_points

NUM_CODE_POINTS = 0x110000

# Odd numbers with bits all over: 2**64 over the golden ratio, and FNV's prime for 64 bits mixed in.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0xCBF29CE484222325)
_HALF = np.uint64(32)
_ONE = np.uint64(1)


@kernel
def hash_range(codes: npt.NDArray[np.uint32], start: int, end: int) -> np.uint64:
    """Return a hash of a range of code points, uint64, good in its upper bits."""
    key = _SEED ^ np.uint64(end - start)
    at = start
    while at + 1 < end:
        key = (key ^ (np.uint64(codes[at]) | (np.uint64(codes[at + 1]) << _HALF))) * _FACTOR
        key ^= key >> _HALF
        at += 2
    if at < end:
        key = (key ^ np.uint64(codes[at])) * _FACTOR
        key ^= key >> _HALF
    return key * _FACTOR


@kernel
def equal_ranges(codes: npt.NDArray[np.uint32], first: int, second: int, length: int) -> bool:
    """Return whether the same code points stand at two places."""
    for offset in range(length):  # noqa: SIM110  not a generator in compiled code
        if codes[first + offset] != codes[second + offset]:
            return False
    return True


@kernel
def count_repeats(
    codes: npt.NDArray[np.uint32], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> tuple[int, int]:
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


def text_of(codes: npt.NDArray[np.uint32]) -> str:
    """Return the text of code points, which is the inverse of `words.code_points`."""
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


@cache
def every_character() -> str:
    """Return all characters in the order of their code points, surrogates among them."""
    return text_of(np.arange(NUM_CODE_POINTS, dtype=np.uint32))


def matching(pattern: str) -> str:
    r"""Return the characters that a regular expression such as \s matches."""
    return "".join(re.findall(pattern, every_character()))


def character_bits(*classes: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Return uint8[NUM_CODE_POINTS]: bit i is set for the characters of the i-th class."""
    bits = np.zeros(NUM_CODE_POINTS, np.uint8)
    for index, characters in enumerate(classes):
        bits[code_points("".join(characters))] |= 1 << index
    return bits
