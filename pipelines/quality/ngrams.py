"""Repeated n-grams of words: the characters in them, for a batch of texts.

An n-gram is the pair of the two (n-1)-grams in it, so it is only looked at where both of them are
repeated, which few are. Equal n-grams are found by hashes of 64 bits.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.spans import Codes, Flags, Keys, Places, Spans, hash_of, number

TOP_N = (2, 3, 4)
DUP_N = (5, 6, 7, 8, 9, 10)

_FIRST, _TOP = TOP_N[0], TOP_N[-1]
_LEAST, _LAST = DUP_N[0], DUP_N[-1]
_HEADS = (8, 16)
"""How many letters stand for an n-gram in the searches for candidates: see _candidates."""
_BUCKETS = 16
_PRIME, _SEED = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_FIRST_PLACE: Any = np.int64(0)

_Chars = npt.NDArray[np.int64]
"""int64[n-grams, texts]: by n from 2 to 10, and text."""


def chars_in_repeated(words: Spans, *, most: int) -> tuple[_Chars, _Chars]:
    """Return the characters of words in repeated n-grams, and how often the commonest occur.

    Args:
        words: The words of texts.
        most: The n of the longest n-grams, one of TOP_N or DUP_N.

    Returns:
        By n of TOP_N the characters of one occurrence of the commonest n-gram, the first of equals,
        and by n of DUP_N those of the words in any repeated n-gram, each once; by n of TOP_N the
        number of occurrences, 0 in a text of fewer words.
    """
    chars = np.zeros((most - 1, len(words.of) - 1), np.int64)
    counts = np.zeros((len(TOP_N), len(words.of) - 1), np.int64)
    _find_repeated(words.keys(), words.lengths, words.of, chars, counts)
    return chars, counts


def chars_seen_before(words: Spans) -> _Chars:
    """Return by n of DUP_N the characters in n-grams seen before, none overlapping a counted one.

    Here n-grams are equal if their letters are, wherever the words in them begin.
    """
    chars = np.zeros((len(DUP_N), len(words.of) - 1), np.int64)
    _find_seen(words.characters.codes, words.starts, words.ends, words.of, chars)
    return chars


@kernel
def _sums_before(values: Places) -> Places:
    """Return the sum of what is before each value, and of all."""
    sums = np.zeros(len(values) + 1, np.int64)
    for at in range(len(values)):
        sums[at + 1] = sums[at] + values[at]
    return sums


@kernel
def _find_repeated(keys: Keys, lengths: Places, of: Places, chars: _Chars, counts: _Chars) -> None:
    """Write what chars_in_repeated() returns.

    Args:
        keys: Hashes of words.
        lengths: Their characters.
        of: Where the words of each text begin.
        chars: Zeros.
        counts: Zeros.
    """
    num_words = len(keys)
    offsets = _sums_before(lengths)
    grams = keys.copy()
    first, found = number(keys, of)
    # Whether the (n-1)-gram that begins with each word is repeated.
    repeated = np.zeros(num_words + 1, np.bool_)
    for word in range(num_words):
        repeated[word] = found[first[word]] > 1
    places, packed = np.empty(num_words, np.int64), np.empty(num_words, np.uint64)
    own = np.zeros(len(of), np.int64)
    for n in range(_FIRST, len(chars) + _FIRST):
        count = _pack_grams(n, keys, of, repeated, grams, places, packed, own)
        first, found = number(packed[:count], own)
        repeated[:] = False
        for text in range(len(of) - 1):
            best, most, end = of[text], 1, np.int64(0)
            for index in range(own[text], own[text + 1]):
                word = places[index]
                repeated[word] = found[first[index]] > 1
                if found[index] > most:
                    best, most = word, found[index]
                if n > _TOP and repeated[word]:
                    chars[n - _FIRST, text] += offsets[word + n] - offsets[max(word, end)]
                    end = word + n
            if n <= _TOP and of[text] + n <= of[text + 1]:
                chars[n - _FIRST, text] = offsets[best + n] - offsets[best]
                counts[n - _FIRST, text] = most


@kernel
def _pack_grams(  # noqa: PLR0913, PLR0917  what is known, and where to write
    n: int,
    keys: Keys,
    of: Places,
    repeated: Flags,
    grams: Keys,
    places: Places,
    packed: Keys,
    own: Places,
) -> int:
    """Make hashes of (n-1)-grams those of n-grams where both in one are repeated.

    Args:
        n: The words of an n-gram.
        keys: Hashes of words.
        of: Where the words of each text begin.
        repeated: Whether the (n-1)-gram that begins with each word is.
        grams: Their hashes, which become those of n-grams.
        places: Takes the first words of these n-grams.
        packed: Takes their hashes.
        own: Takes where those of each text begin.

    Returns:
        How many there are.
    """
    count = 0
    for text in range(len(of) - 1):
        for word in range(of[text], of[text + 1] - n + 1):
            if repeated[word] and repeated[word + 1]:
                mixed = (grams[word] ^ (grams[word] >> _HALF)) * _FACTOR
                grams[word] = mixed ^ keys[word + n - 1]
                places[count], packed[count] = word, grams[word]
                count += 1
        own[text + 1] = count
    return count


@kernel
def _find_seen(codes: Codes, starts: Places, ends: Places, of: Places, chars: _Chars) -> None:
    """Write what chars_seen_before() returns into zeros."""
    for text in range(len(of) - 1):
        first, last = starts[of[text] : of[text + 1]], ends[of[text] : of[text + 1]]
        offsets = _sums_before(last - first)
        letters = np.empty(offsets[-1], np.uint32)
        for word in range(len(first)):
            letters[offsets[word] : offsets[word + 1]] = codes[first[word] : last[word]]
        places = _candidates(letters, offsets)
        keys = np.empty(len(places), np.uint64)
        for index, place in enumerate(places):
            end = offsets[place + _LEAST - 1]
            keys[index] = _extended(_SEED, letters[offsets[place] : end])
        size = _num_slots(len(places))
        for n in range(_LEAST, _LAST + 1):
            slots = np.zeros(size, np.uint64)
            chars[n - _LEAST, text] = _count_seen(n, letters, offsets, places, keys, slots)


@kernel
def _count_seen(
    n: int, letters: Codes, offsets: Places, places: Places, keys: Keys, slots: Keys
) -> Any:
    """Count letters as above for one n, and make the keys of (n-1)-grams those of n-grams."""
    mask = np.uint64(len(slots) - 1)
    num_letters = free = _FIRST_PLACE
    for index, place in enumerate(places):
        if place + n >= len(offsets):
            break
        end = offsets[place + n]
        keys[index] = _extended(keys[index], letters[offsets[place + n - 1] : end])
        if place < free:
            continue
        key = (keys[index] ^ (keys[index] >> _HALF)) * _FACTOR | np.uint64(1)
        slot = (key >> _HALF) & mask
        while slots[slot] and slots[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if slots[slot]:
            num_letters += end - offsets[place]
            free = place + n
        slots[slot] = key
    return num_letters


@kernel
def _candidates(letters: Codes, offsets: Places) -> Places:
    """Return the words, ascending, at which n-grams of _LEAST or more may be repeated.

    A repeated n-gram can only begin where the next letters follow the beginning of another word
    too, as many as are in it at least. Some other words are among those returned.
    """
    places = np.arange(max(0, len(offsets) - _LEAST))
    if not len(places):
        return places
    buckets = np.empty(_BUCKETS * _num_slots(len(places)), np.uint8)
    mask = np.uint64(len(buckets) - 1)
    heads = np.empty(len(places), np.uint64)
    for length in _HEADS:
        buckets[:] = 0
        for index, place in enumerate(places):
            end = min(offsets[place] + length, len(letters))
            bucket = (hash_of(letters[offsets[place] : end]) >> _HALF) & mask
            heads[index] = bucket
            buckets[bucket] = 2 if buckets[bucket] else 1
        kept = 0
        for index, place in enumerate(places):
            is_short = offsets[place + _LEAST] - offsets[place] < length
            if is_short or buckets[heads[index]] > 1:
                places[kept] = place
                kept += 1
        places = places[:kept]
    return places


@kernel
def _num_slots(num_keys: int) -> int:
    """Return a number of slots for so many keys: a power of two."""
    slots = 4
    while slots < 2 * num_keys:
        slots *= 2
    return slots


@kernel
def _extended(key: np.uint64, letters: Codes) -> np.uint64:
    """Return the hash of what `key` is the hash of and letters after that (FNV-1a)."""
    for letter in letters:
        key = (key ^ np.uint64(letter)) * _PRIME
    return key
