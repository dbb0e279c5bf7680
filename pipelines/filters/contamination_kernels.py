"""The loops that count the runs of benchmarks in UTF-8, as units.py and decontaminate.py do.

All runs begin with a few units that are looked for first, at every place; those of other texts are
hardly ever among them. Places are uint64: an index that may be negative costs a comparison.
"""

from typing import NamedTuple

import numpy as np

from pipelines.compiled import kernel


class Characters(NamedTuple):
    """What units.py says of characters."""

    kinds: np.ndarray
    """uint8[n], the kind of each; those that follow are as the last one."""
    values: np.ndarray
    """uint64[n], the value of each."""
    word: int
    """The kind that makes a word with those beside it."""
    single: int
    """The kind that makes a unit alone."""
    nothing: int
    """The kind that is left out."""


class Runs(NamedTuple):
    """The runs of benchmarks."""

    base: np.uint64
    """Of the polynomials of words and of runs."""
    inverse: np.uint64
    """Of the base modulo 2**64."""
    head: int
    """How many units a head has: the first ones of a run."""
    heads: np.ndarray
    """uint64[h], the hashes of the heads of all runs, sorted."""
    head_bits: np.ndarray
    """uint64[b], by the leading bits of a hash the `three_bits` of all heads that have them."""
    head_shift: np.uint64
    """How far to shift a hash so that its leading bits remain."""
    lengths: np.ndarray
    """int64[l], units in a run."""
    firsts: np.ndarray
    """int64[l + 1], where in `hashes` each length begins, and the last one ends."""
    hashes: np.ndarray
    """uint64[r], the hashes of runs, sorted within each length."""
    run_bits: np.ndarray
    """As head_bits, of all runs."""
    run_shift: np.uint64
    seen: np.ndarray
    """int64[r], the number of the last text that held each run."""
    units: np.ndarray
    """uint64[u], memory for units; more than in two runs."""


@kernel
def count_runs(  # noqa: C901, PLR0915  one loop over characters, without calls
    data: np.ndarray,
    offsets: np.ndarray,
    characters: Characters,
    runs: Runs,
    number: int,
    counts: np.ndarray,
) -> None:
    """Count the distinct runs in each text.

    Args:
        data: The texts, uint8[m].
        offsets: Where each of them begins, and where the last one ends, int64[n + 1].
        characters: What to make units of.
        runs: The runs to look for.
        number: A number for the first text, positive; the next ones follow, none is used twice.
        counts: int32[n], for the result.
    """
    one, low = np.uint64(1), np.uint64(0x3F)
    kinds, values, units = characters.kinds, characters.values, runs.units
    word, single, nothing = characters.word, characters.single, characters.nothing
    last = np.uint64(len(kinds) - 1)
    most = len(units) - 2
    base = runs.base
    for text in range(len(counts)):
        place, end = np.uint64(offsets[text]), np.uint64(offsets[text + 1])
        found = num = 0
        total, power = np.uint64(0), one
        in_word = False
        while place < end:
            code = np.uint64(data[place])
            place += one
            if code >= np.uint64(0x80):
                next_bits = np.uint64(data[place]) & low
                place += one
                if code < np.uint64(0xE0):
                    code = (code & np.uint64(0x1F)) << np.uint64(6) | next_bits
                elif code < np.uint64(0xF0):
                    code = (code & np.uint64(0xF)) << np.uint64(12) | next_bits << np.uint64(6)
                    code |= np.uint64(data[place]) & low
                    place += one
                else:
                    code = (code & np.uint64(0x7)) << np.uint64(18) | next_bits << np.uint64(12)
                    code |= (np.uint64(data[place]) & low) << np.uint64(6)
                    code |= np.uint64(data[place + one]) & low
                    place += one + one
                code = min(code, last)
            kind = kinds[code]
            if kind == word:
                total += values[code] * power
                power *= base
                in_word = True
            elif kind != nothing:
                if in_word:
                    units[num] = _mixed(total)
                    num += 1
                    total, power = np.uint64(0), one
                    in_word = False
                if kind == single:
                    units[num] = _mixed(values[code])
                    num += 1
                if num >= most:
                    found += _found(units, num, runs, number + text)
                    num = _keep_end(units, num, runs.lengths.max() - 1)
        if in_word:
            units[num] = _mixed(total)
            num += 1
        counts[text] = found + _found(units, num, runs, number + text)


@kernel
def _keep_end(units: np.ndarray, num: int, size: int) -> int:
    """Move the last units to the front and return how many they are."""
    for index in range(size):
        units[index] = units[num - size + index]
    return size


@kernel
def _found(units: np.ndarray, num: int, runs: Runs, number: int) -> int:
    """Return how many runs are among some units and have not been seen in this text."""
    head, heads, head_bits, shift = runs.head, runs.heads, runs.head_bits, runs.head_shift
    if num < head:
        return 0
    base, inverse = runs.base, runs.inverse
    size = len(heads)
    newest = np.uint64(1)
    rolled = np.uint64(0)
    for index in range(head - 1):
        rolled += units[index] * newest
        newest *= base
    found = 0
    for first in range(num - head + 1):
        rolled += units[first + head - 1] * newest
        bits = three_bits(rolled)
        if head_bits[rolled >> shift] & bits == bits and _place(heads, 0, size, rolled) >= 0:
            found += _found_at(units, first, num, runs, number)
        rolled = (rolled - units[first]) * inverse
    return found


@kernel
def three_bits(value: np.uint64) -> np.uint64:
    """Return a number of up to three bits, as the low bits of a value say."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    bits = one << (value & low) | one << (value >> six & low)
    return bits | one << (value >> six + six & low)


@kernel
def _found_at(units: np.ndarray, first: int, num: int, runs: Runs, number: int) -> int:
    """Return how many runs begin at a unit and have not been seen in this text."""
    found = 0
    rolled = np.uint64(0)
    power = np.uint64(1)
    after = first
    for index in range(len(runs.lengths)):  # ascending
        stop = first + runs.lengths[index]
        if stop > num:
            break
        while after < stop:
            rolled += units[after] * power
            power *= runs.base
            after += 1
        bits = three_bits(rolled)
        if runs.run_bits[rolled >> runs.run_shift] & bits == bits:
            run = _place(runs.hashes, runs.firsts[index], runs.firsts[index + 1], rolled)
            if run >= 0 and runs.seen[run] != number:
                runs.seen[run] = number
                found += 1
    return found


@kernel
def _place(hashes: np.ndarray, low: int, high: int, wanted: np.uint64) -> int:
    """Return where a hash is among sorted ones, -1 if it is not."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if hashes[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and hashes[low] == wanted else -1


@kernel
def _mixed(value: np.uint64) -> np.uint64:
    """Return the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) of a value."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
