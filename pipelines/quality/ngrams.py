"""Counts the characters in repeated n-grams of words, for a batch of texts.

An n-gram can only be repeated if the two (n-1)-grams in it are, so only those few n-grams are
looked up whose two (n-1)-grams are repeated. Equal n-grams are found by hashes of 64 bits.
"""

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.spans import (
    Codes,
    Flags,
    Keys,
    Places,
    Spans,
    cumsum_from_zero,
    first_occurrences,
    hash_of,
    num_slots,
)

TOP_N = (2, 3, 4)
DUP_N = (5, 6, 7, 8, 9, 10)

_FIRST, _TOP = TOP_N[0], TOP_N[-1]
_SHORTEST, _LONGEST = DUP_N[0], DUP_N[-1]
_HEADS = (8, 16)
"""The numbers of letters that represent an n-gram in the searches of _find_candidates."""
_BUCKETS = 16
_PRIME, _SEED = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF, _ONE = np.uint64(32), np.uint64(1)

_Chars = npt.NDArray[np.int64]
"""int64[n-grams, texts]: a number for each n from 2 to 10 and each text."""


def chars_in_repeated(words: Spans, *, most: int) -> tuple[_Chars, _Chars]:
    """Return how many characters repeated n-grams have, and how often the commonest occur.

    Args:
        words: The words of texts.
        most: The n of the longest n-grams, one of TOP_N or DUP_N.

    Returns:
        Two arrays. For each n of TOP_N, the first has the number of characters in one occurrence of
        the commonest n-gram (the first of equally common n-grams), and for each n of DUP_N, the
        number of characters of the words in any repeated n-gram, counting each word once. For each
        n of TOP_N, the second has the number of occurrences of the commonest n-gram; 0 if a text
        has fewer than n words.
    """
    chars = np.zeros((most - 1, len(words.offsets) - 1), np.int64)
    counts = np.zeros((len(TOP_N), len(words.offsets) - 1), np.int64)
    keys, char_offsets = words.hashes(), cumsum_from_zero(words.lengths)
    grams = keys.copy()
    first, found = first_occurrences(keys, words.offsets)
    # Whether the (n-1)-gram that begins with each word is repeated.
    repeated = np.append(found[first] > 1, False)
    places, packed = np.empty(len(keys), np.int64), np.empty(len(keys), np.uint64)
    gram_offsets = np.zeros(len(words.offsets), np.int64)
    for n in range(_FIRST, most + 1):
        _pack_grams(n, keys, words.offsets, repeated, grams, places, packed, gram_offsets)
        first, found = first_occurrences(packed[: gram_offsets[-1]], gram_offsets)
        if n <= _TOP:
            row = n - _FIRST
            _find_commonest(
                n, words.offsets, gram_offsets, places, char_offsets, found, chars[row], counts[row]
            )
        repeated[:] = False
        repeated[places[: gram_offsets[-1]]] = found[first] > 1
        if n > _TOP:
            _count_repeated(n, gram_offsets, places, char_offsets, repeated, chars[n - _FIRST])
    return chars, counts


def chars_seen_before(words: Spans) -> _Chars:
    """Return, for each n of DUP_N, the number of characters in repeated n-grams.

    Only n-grams that do not overlap are counted. Here n-grams are equal if their letters are equal,
    even if their words are divided differently.
    """
    chars = np.zeros((len(DUP_N), len(words.offsets) - 1), np.int64)
    most = max(words.counts, default=0)
    slots = np.empty(num_slots(most), np.uint64)
    buckets = np.empty(_BUCKETS * len(slots), np.uint8)
    places, keys = np.empty(most, np.int64), np.empty(most, np.uint64)
    letters, char_offsets = words.joined().characters.codes, cumsum_from_zero(words.lengths)
    _find_seen(letters, char_offsets, words.offsets, places, keys, slots, buckets, chars)
    return chars


@kernel
def _pack_grams(  # noqa: PLR0913, PLR0917  what is known, and where to write
    n: int,
    keys: Keys,
    offsets: Places,
    repeated: Flags,
    grams: Keys,
    places: Places,
    packed: Keys,
    gram_offsets: Places,
) -> None:
    """Extend repeated (n-1)-grams to n-grams, and write those that may be repeated.

    Args:
        n: The number of words of an n-gram.
        keys: The hashes of the words.
        offsets: Where the words of each text begin.
        repeated: Whether the (n-1)-gram that begins with each word is repeated.
        grams: The hashes of these (n-1)-grams, which the hashes of n-grams replace.
        places: Output: the first word of each n-gram that may be repeated.
        packed: Output: the hashes of these n-grams.
        gram_offsets: Output: where the n-grams of each text begin in `places` and `packed`.
    """
    count = 0
    for text in range(len(offsets) - 1):
        for word in range(offsets[text], offsets[text + 1] - n + 1):
            if repeated[word] and repeated[word + 1]:
                mixed = (grams[word] ^ (grams[word] >> _HALF)) * _FACTOR
                grams[word] = mixed ^ keys[word + n - 1]
                places[count], packed[count] = word, grams[word]
                count += 1
        gram_offsets[text + 1] = count


@kernel
def _find_commonest(  # noqa: PLR0913, PLR0917  what is known, and where to write
    n: int,
    offsets: Places,
    gram_offsets: Places,
    places: Places,
    char_offsets: Places,
    found: Places,
    chars: Places,
    counts: Places,
) -> None:
    """Write how many characters the commonest n-gram of each text has, and how often it occurs.

    Args:
        n: The number of words of an n-gram.
        offsets: Where the words of each text begin.
        gram_offsets: Where the n-grams of each text begin among those that may be repeated.
        places: The first words of these n-grams.
        char_offsets: The number of characters before each word.
        found: How often each n-gram occurs, at its first occurrence.
        chars: Output: the numbers of characters.
        counts: Output: the numbers of occurrences.
    """
    for text in range(len(chars)):
        best, most = offsets[text], np.int64(1)
        for index in range(gram_offsets[text], gram_offsets[text + 1]):
            if found[index] > most:
                best, most = places[index], found[index]
        if offsets[text] + n <= offsets[text + 1]:
            chars[text], counts[text] = char_offsets[best + n] - char_offsets[best], most


@kernel
def _count_repeated(
    n: int,
    gram_offsets: Places,
    places: Places,
    char_offsets: Places,
    repeated: Flags,
    chars: Places,
) -> None:
    """Write the number of characters of words in each text's repeated n-grams, each word once.

    Args:
        n: The number of words of an n-gram.
        gram_offsets: Where the n-grams of each text begin among those that may be repeated.
        places: The first words of these n-grams.
        char_offsets: The number of characters before each word.
        repeated: Whether the n-gram that begins with each word is repeated.
        chars: Output: the numbers of characters.
    """
    for text in range(len(chars)):
        end = np.int64(0)
        for word in places[gram_offsets[text] : gram_offsets[text + 1]]:
            if repeated[word]:
                chars[text] += char_offsets[word + n] - char_offsets[max(word, end)]
                end = word + n


@kernel
def _find_seen(  # noqa: PLR0913, PLR0917  words, memory, and where to write
    letters: Codes,
    char_offsets: Places,
    offsets: Places,
    places: Places,
    keys: Keys,
    slots: Keys,
    buckets: Flags,
    chars: _Chars,
) -> None:
    """Write the result of chars_seen_before().

    Args:
        letters: The letters of all words.
        char_offsets: Where the letters of each word begin, and where the last ones end.
        offsets: Where the words of each text begin.
        places: Memory for a number per word of a text.
        keys: Memory for a hash per word of a text.
        slots: Memory for a hash table of num_slots() slots.
        buckets: Memory, _BUCKETS times as long as the slots.
        chars: Output: the numbers of characters.
    """
    for text in range(len(offsets) - 1):
        count = _find_candidates(
            letters, char_offsets[offsets[text] : offsets[text + 1] + 1], places, keys, buckets
        )
        for index in range(count):
            places[index] += offsets[text]
            first = places[index]
            keys[index] = _extended(
                _SEED, letters[char_offsets[first] : char_offsets[first + _SHORTEST - 1]]
            )
        size = num_slots(count)
        for n in range(_SHORTEST, _LONGEST + 1):
            for slot in range(size):
                slots[slot] = 0
            chars[n - _SHORTEST, text] = _count_seen(
                n,
                letters,
                char_offsets[: offsets[text + 1] + 1],
                places[:count],
                keys,
                slots[:size],
            )


@kernel
def _count_seen(
    n: int, letters: Codes, char_offsets: Places, places: Places, keys: Keys, slots: Keys
) -> int:
    """Return the number of letters for one n, and extend the hashes of (n-1)-grams to n-grams."""
    mask = np.uint64(len(slots) - 1)
    num_letters = free = 0
    for index in range(len(places)):
        place = places[index]
        if place + n >= len(char_offsets):
            break
        end = char_offsets[place + n]
        keys[index] = _extended(keys[index], letters[char_offsets[place + n - 1] : end])
        if place < free:
            continue
        key = (keys[index] ^ (keys[index] >> _HALF)) * _FACTOR | _ONE
        slot = (key >> _HALF) & mask
        while slots[slot] and slots[slot] != key:
            slot = (slot + _ONE) & mask
        if slots[slot]:
            num_letters += end - char_offsets[place]
            free = place + n
        slots[slot] = key
    return num_letters


@kernel
def _find_candidates(
    letters: Codes, char_offsets: Places, places: Places, heads: Keys, buckets: Flags
) -> int:
    """Write, in order, the words that may begin a repeated n-gram of _SHORTEST words or more.

    A word can only begin one if the letters of the first _SHORTEST words also occur where a
    different word begins. Some of the written words begin no repeated n-gram.

    Returns:
        The number of words.
    """
    count = max(0, len(char_offsets) - _SHORTEST)
    for index in range(count):
        places[index] = index
    size = _BUCKETS * num_slots(count)
    mask = np.uint64(size - 1)
    for length in _HEADS:
        for bucket in range(size):
            buckets[bucket] = 0
        for index in range(count):
            start = char_offsets[places[index]]
            end = min(start + length, char_offsets[-1])
            heads[index] = (hash_of(letters[start:end]) >> _HALF) & mask
            buckets[heads[index]] = 2 if buckets[heads[index]] else 1
        kept = 0
        for index in range(count):
            place = places[index]
            is_short = char_offsets[place + _SHORTEST] - char_offsets[place] < length
            if is_short or buckets[heads[index]] > 1:
                places[kept] = place
                kept += 1
        count = kept
    return count


@kernel
def _extended(key: np.uint64, letters: Codes) -> np.uint64:
    """Return the hash `key`, extended by further letters (FNV-1a)."""
    for letter in letters:
        key = (key ^ np.uint64(letter)) * _PRIME
    return key
