"""Repeated n-grams of words as compiled loops; pipelines/quality/repetition.py defines the shares.

Equal words get the same number. An n-gram is the pair of the two (n-1)-grams in it, so two numbers
tell it from all others, and it is only looked at where both of them are repeated, which few are.
Hashes only say where to look: what is equal is decided by comparing.
"""

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel, kernel_in_place
from pipelines.quality.compiled.lines import Codes, Places, equal_ranges, hash_range
from pipelines.quality.repetition import TOP_N, datatrove_ngrams, paper_ngrams, ratio
from pipelines.quality.spans import WordSpans

_Numbers = npt.NDArray[np.int32]
_Hashes = npt.NDArray[np.uint64]
_Found = tuple[_Numbers, _Numbers, _Hashes, _Numbers]
"""By the number of an n-gram its count, the place of its first word, the first time, and its key;
then slots, which hold numbers + 1."""

_TOP = 4  # the longest of TOP_N
_LEAST, _MOST = 5, 10  # of DUP_N
_COUNTS, _LETTERS, _NUM_TOTALS = 3, 6, 12  # places in totals
_SPACED = -1

# How many letters represent an n-gram in the searches for candidates; see _candidates. All have at
# least as many letters as words, so none is shorter than the first of these.
_HEADS = (_LEAST, 8, 16)
_SHORT = 3  # letters of a word
_BUCKETS = 16

_SPACE = np.uint32(0x20)
_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF, _ONE = np.uint64(32), np.uint64(1)


def paper_shares(words: WordSpans) -> tuple[float, ...]:
    """Return the shares of repetition.paper_ngrams()."""
    totals = np.zeros(_NUM_TOTALS, np.int64)
    num_letters = _count_repeated(words.codes, words.starts, words.ends, _MOST, totals)
    if num_letters == _SPACED:
        return paper_ngrams(_strings(words))
    figures = totals.tolist()
    tops = zip(figures[:_COUNTS], figures[_COUNTS:_LETTERS], strict=True)
    chars = [length * count if count > 1 else 0 for length, count in tops] + figures[_LETTERS:]
    return tuple([ratio(part, num_letters) for part in chars])


def datatrove_shares(words: WordSpans, num_chars: int) -> tuple[float, ...]:
    """Return the shares of repetition.datatrove_ngrams()."""
    totals = np.zeros(_NUM_TOTALS, np.int64)
    num_letters = _count_repeated(words.codes, words.starts, words.ends, _TOP, totals)
    if num_letters == _SPACED:
        return datatrove_ngrams(_strings(words), num_chars)
    _count_apart(words.codes, words.starts, words.ends, num_letters, totals)
    figures = totals.tolist()
    tops = zip(TOP_N, figures[:_COUNTS], figures[_COUNTS:_LETTERS], strict=True)
    chars = [(length + n - 1) * count for n, length, count in tops] + figures[_LETTERS:]
    return tuple([ratio(part, num_chars) for part in chars])


def _strings(words: WordSpans) -> list[str]:
    text = words.codes.tobytes().decode("utf-32-le", "surrogatepass")
    ranges = zip(words.starts.tolist(), words.ends.tolist(), strict=True)
    return [text[start:end] for start, end in ranges]


@kernel
def _count_repeated(codes: Codes, starts: Places, ends: Places, most: int, totals: Places) -> int:
    """Count n-grams for every n from 2 to `most`.

    Args:
        codes: Code points.
        starts: Where each word begins in them.
        ends: Where it ends.
        most: At least _TOP.
        totals: int64[_NUM_TOTALS], zeros. Takes, for n from 2 to _TOP, the letters of the commonest
            n-gram, the first of equals; then their counts; then, for n from _LEAST to `most`, the
            letters of words in repeated n-grams.

    Returns:
        The letters of all words; _SPACED, and nothing is counted, if a word has a space in it.
        n-grams are equal if their words joined by spaces are, so with spaces in words, others may
        spell the same.
    """
    num_words = len(starts)
    offsets = _offsets(starts, ends)
    # Numbers of n-grams by the place of their first word, -1 where they are not repeated. One more
    # ends all n-grams at the last word.
    grams, counts = np.empty(num_words + 1, np.int32), np.empty(num_words, np.int32)
    firsts, places = np.empty(num_words, np.int32), np.empty(num_words, np.int32)
    keys, slots = np.empty(num_words, np.uint64), np.empty(_capacity(num_words), np.int32)
    found = (counts, firsts, keys, slots)
    if not _number_words(codes, starts, offsets, grams, found):
        return _SPACED
    grams[num_words] = -1
    for word in range(num_words):
        places[word] = word
    num_places = _keep_repeated(places, grams, counts)
    for n in range(2, most + 1):
        places = places[:num_places]
        num_grams = _number_pairs(places, grams, found)
        num_places = _keep_repeated(places, grams, counts)
        if n <= _TOP and n <= num_words:
            top = _top(counts, num_grams)
            first = firsts[top] if top >= 0 else 0
            totals[n - 2] = offsets[first + n] - offsets[first]
            totals[_COUNTS + n - 2] = counts[top] if top >= 0 else 1
        if n >= _LEAST:
            totals[_LETTERS + n - _LEAST] = _covered(offsets, places, num_places, n)
    return int(offsets[num_words])


@kernel
def _offsets(starts: Places, ends: Places) -> Places:
    """Return how many letters precede each word, and how many there are."""
    offsets = np.empty(len(starts) + 1, np.int64)
    offsets[0] = 0
    for word in range(len(starts)):
        offsets[word + 1] = offsets[word] + ends[word] - starts[word]
    return offsets


@kernel_in_place
def _capacity(num_keys: int) -> int:
    """Return a number of slots for so many keys: a power of two."""
    capacity = 4
    while capacity < 2 * num_keys:
        capacity *= 2
    return capacity


@kernel_in_place
def _number_words(
    codes: Codes, starts: Places, offsets: Places, grams: _Numbers, found: _Found
) -> bool:
    """Write the number of each word: from 0, in order of first occurrence.

    Returns:
        False, with some words left out, if a word has a space in it.
    """
    counts, firsts, keys, slots = found
    slots[:] = 0
    mask = np.uint64(len(slots) - 1)
    num_found = 0
    for word in range(len(starts)):
        start, length = starts[word], offsets[word + 1] - offsets[word]
        key = hash_range(codes, start, start + length)
        slot = (key >> _HALF) & mask
        while slots[slot]:
            number = slots[slot] - 1
            first = firsts[number]
            if (
                keys[number] == key
                and offsets[first + 1] - offsets[first] == length
                and equal_ranges(codes, starts[first], start, length)
            ):
                break
            slot = (slot + _ONE) & mask
        else:
            if _has_space(codes, start, start + length):
                return False
            keys[num_found], firsts[num_found], counts[num_found] = key, word, 0
            num_found += 1
            slots[slot] = num_found
        number = slots[slot] - 1
        grams[word] = number
        counts[number] += 1
    return True


@kernel_in_place
def _has_space(codes: Codes, start: int, end: int) -> bool:
    for place in range(start, end):  # noqa: SIM110  not a generator in compiled code
        if codes[place] == _SPACE:
            return True
    return False


@kernel_in_place
def _number_pairs(places: _Numbers, grams: _Numbers, found: _Found) -> int:
    """Write numbers of n-grams over those of (n-1)-grams at ascending places; return how many.

    Where one of the two (n-1)-grams is not repeated, nor is the n-gram: that is -1.
    """
    counts, firsts, keys, slots = found
    capacity = _capacity(len(places))
    slots[:capacity] = 0
    mask = np.uint64(capacity - 1)
    num_found = 0
    for place in places:
        if grams[place + 1] < 0:
            grams[place] = -1
            continue
        key = (np.uint64(grams[place]) << _HALF) | np.uint64(grams[place + 1])
        slot = _spread(key) & mask
        while slots[slot] and keys[slots[slot] - 1] != key:
            slot = (slot + _ONE) & mask
        if not slots[slot]:
            keys[num_found], firsts[num_found], counts[num_found] = key, place, 0
            num_found += 1
            slots[slot] = num_found
        number = slots[slot] - 1
        grams[place] = number
        counts[number] += 1
    return num_found


@kernel_in_place
def _keep_repeated(places: _Numbers, grams: _Numbers, counts: _Numbers) -> int:
    """Put the places of repeated n-grams first, and return how many; other n-grams become -1."""
    kept = 0
    for place in places:
        if grams[place] >= 0 and counts[grams[place]] > 1:
            places[kept] = place
            kept += 1
        else:
            grams[place] = -1
    return kept


@kernel_in_place
def _top(counts: _Numbers, num_grams: int) -> int:
    """Return the first place of the greatest count; -1 if none is above 1."""
    top, most = -1, 1
    for number in range(num_grams):
        if counts[number] > most:
            top, most = number, counts[number]
    return top


@kernel_in_place
def _covered(offsets: Places, places: _Numbers, num_places: int, n: int) -> int:
    """Return the letters of the words in n-grams at ascending places, each word once."""
    num_letters = end = 0
    for index in range(num_places):
        place = places[index]
        num_letters += offsets[place + n] - offsets[place if place > end else end]
        end = place + n
    return num_letters


@kernel
def _count_apart(
    codes: Codes, starts: Places, ends: Places, num_letters: int, totals: Places
) -> None:
    """Count the letters in n-grams seen before, none overlapping a counted one, for each of DUP_N.

    n-grams are equal if their letters are, wherever the words in them begin. `totals` takes the
    counts where _count_repeated() has its last ones.
    """
    offsets = _offsets(starts, ends)
    num_words = len(starts)
    letters = np.empty(num_letters, np.uint32)
    for word in range(num_words):
        shift = starts[word] - offsets[word]
        for place in range(offsets[word], offsets[word + 1]):
            letters[place] = codes[place + shift]
    firsts, keys = np.empty(num_words, np.int32), np.empty(num_words, np.uint64)
    firsts = firsts[: _candidates(letters, offsets, firsts, keys)]
    for index, first in enumerate(firsts):
        keys[index] = _extended(_SEED, letters, offsets[first], offsets[first + _LEAST - 1])
    slots = np.empty(_capacity(num_words), np.int32)
    for n in range(_LEAST, _MOST + 1):
        totals[_LETTERS + n - _LEAST] = _num_repeated_letters(
            letters, offsets, firsts, keys, slots, n
        )


@kernel_in_place
def _num_repeated_letters(
    letters: Codes, offsets: Places, firsts: _Numbers, keys: _Hashes, slots: _Numbers, n: int
) -> int:
    """Count as above for one n, and make the keys of (n-1)-grams those of n-grams."""
    capacity = _capacity(len(firsts))
    slots[:capacity] = 0
    mask = np.uint64(capacity - 1)
    num_repeated = free = 0
    for index, first in enumerate(firsts):
        if first + n >= len(offsets):
            break
        start, end = offsets[first], offsets[first + n]
        key = _extended(keys[index], letters, offsets[first + n - 1], end)
        keys[index] = key
        if first < free:
            continue
        slot = _spread(key) & mask
        while slots[slot]:
            other = slots[slot] - 1
            place = offsets[firsts[other]]
            if (
                keys[other] == key
                and offsets[firsts[other] + n] - place == end - start
                and equal_ranges(letters, place, start, end - start)
            ):
                num_repeated += end - start
                free = first + n
                break
            slot = (slot + _ONE) & mask
        else:
            slots[slot] = index + 1
    return num_repeated


@kernel
def _candidates(letters: Codes, offsets: Places, places: _Numbers, keys: _Hashes) -> int:
    """Write where n-grams of _LEAST or more words may be repeated, ascending; return how many.

    A repeated n-gram can only begin where the next letters follow the beginning of another word
    too, as many as are in it at least. Some other places are among those written. `keys` is room
    for as many hashes as there are words.
    """
    count = max(0, len(offsets) - _LEAST)
    for place in range(count):
        places[place] = place
    num_buckets = _BUCKETS * _capacity(count)
    buckets = np.empty(num_buckets, np.uint8)
    mask = np.uint64(num_buckets - 1)
    # Where words are of a letter or two, many n-grams are shorter than the second head; where they
    # are longer, too many begin with the same few letters.
    is_short = len(letters) < _SHORT * len(offsets)
    for head in _HEADS:
        if head < _HEADS[1] and not is_short:
            continue
        buckets[:] = 0
        for index in range(count):
            start = offsets[places[index]]
            end = start + head if start + head < len(letters) else len(letters)
            bucket = (hash_range(letters, start, end) >> _HALF) & mask
            keys[index] = bucket
            buckets[bucket] = 2 if buckets[bucket] else 1
        kept = 0
        for index in range(count):
            place = places[index]
            if buckets[keys[index]] > 1 or offsets[place + _LEAST] - offsets[place] < head:
                places[kept] = place
                kept += 1
        count = kept
    return count


@kernel_in_place
def _extended(key: np.uint64, letters: Codes, start: int, end: int) -> np.uint64:
    """Return the hash of what `key` is the hash of and further letters after that (FNV-1a)."""
    for place in range(start, end):
        key = (key ^ np.uint64(letters[place])) * _PRIME
    return key


@kernel_in_place
def _spread(key: np.uint64) -> np.uint64:
    """Return a hash of a key, good in its lower bits."""
    key *= _GOLDEN
    key ^= key >> _HALF
    key *= _GOLDEN
    return key ^ (key >> _HALF)
