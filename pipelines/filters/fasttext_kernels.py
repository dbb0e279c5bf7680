"""fastText's classifiers in compiled code: its labels, and its scores to the bit.

    a line ─▶ words ─▶ numbers of rows, remembered or by n-grams ─▶ mean of the rows ─▶ likeliest

A sum of float32 numbers depends on the order of the additions, so rows are added as fastText adds
them: word after word, a word's own row first, then those of its n-grams, by where they begin and
then by length. What can be saved is finding them: words that come again are remembered with the
numbers of their rows, and a bitmap tells at once that most n-grams have none.

The rules are those of fastText 0.9.2 (https://github.com/facebookresearch/fastText,
src/dictionary.cc and src/loss.cc). Text is UTF-8 as int8: fastText hashes bytes as signed numbers,
and a byte below -64 goes on with a character.

Kernels that are called for each word take arrays, not tuples of them: taking one out of a tuple
costs two locked additions.
"""
# ruff: noqa: PLR0913, PLR0917, PLR2004  arrays one by one, see above; bytes of UTF-8

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipelines.compiled import compiling, kernel_in_place
from pipelines.filters.fasttext_model import END_OF_LINE, LABEL_PREFIX, Model

_MOST_WORDS = 1 << 16
"""Words that are remembered, in 64 bytes each on average."""
_LONGEST_WORD = 48
"""Bytes of the longest one, if the model has no longer one."""
_STEP = 1 << 8
"""Words that are split off a line at a time, and characters of a word that n-grams begin with."""
_MOST_ROWS = 1 << 12
"""Rows that wait to be added, with room for those of one more word."""

_PREFIX = np.frombuffer(LABEL_PREFIX, np.int8)
_OPEN, _CLOSE = ord("<"), ord(">")
_BASIS, _PRIME = np.uint64(2166136261), np.uint64(16777619)  # FNV-1a, of 32 bits
_SCATTER = np.uint64(0x9E3779B97F4A7C15)
_LOW, _BITS_31, _BITS_63 = np.uint64(2**32 - 1), np.uint64(2**31 - 1), np.uint64(63)
_0, _1, _2, _4 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
_6, _24, _32, _48, _56 = np.uint64(6), np.uint64(24), np.uint64(32), np.uint64(48), np.uint64(56)
_PAIRS, _QUADS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_OCTETS, _ONES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)
_LEAST = np.float32(math.log(1e-5))


class Ngrams(NamedTuple):
    """Which n-grams there are, and where their rows are."""

    shortest: int
    longest: int
    num_buckets: int
    first_row: int
    """The row of the first bucket that has one; the others follow."""
    bits: np.ndarray
    """uint64[num_buckets / 64 + 1], a bit for each bucket, lowest first: whether it has a row.

    Empty if all have.
    """
    ranks: np.ndarray
    """int32[num_buckets / 64 + 1], how many buckets before those of a number have a row."""


class Tree(NamedTuple):
    """As in Model."""

    nodes: np.ndarray
    factors: np.ndarray
    children: np.ndarray


class Memory(NamedTuple):
    """Words and the numbers of their rows. Those of the model come first and stay.

    When there is no room for another word, all others are forgotten.
    """

    slots: np.ndarray
    """int64[2 · words], by hash: 31 bits of the hash, then where the record begins; -1: free."""
    records: np.ndarray
    """int32[n]: bytes of a word, number of its rows, the bytes, the rows; then the next word's."""
    record_bytes: np.ndarray
    """int8[4 · n], the same memory."""
    sizes: np.ndarray
    """int64[2, 2]: words and length of the records; those of the model's words."""
    seen: np.ndarray
    """uint8[2 ** 16], by hash: some bits of the hash of a word that was met, but not remembered.

    A word is remembered when it is met again; most of the rare ones are not.
    """


class Scratch(NamedTuple):
    """Memory for what is made of one line."""

    begins: np.ndarray
    """int64[_STEP + 1], where words begin; the last one is never written."""
    ends: np.ndarray
    word_keys: np.ndarray
    """uint64[_STEP + 1], hashes of words."""
    keys: np.ndarray
    """uint64[n], hashes of n-grams, then their buckets."""
    waiting: np.ndarray
    """int32[n], rows to add."""
    counts: np.ndarray
    """int64[2], how many rows wait, how many were added."""
    mean: np.ndarray
    """float32[dimensions], their sum, then their mean."""
    open_nodes: np.ndarray
    """int64[labels · 2], nodes of the tree that were not visited yet."""
    open_scores: np.ndarray


@kernel_in_place
def is_space(byte: int) -> bool:
    """Return whether a byte separates words."""
    return 0 <= byte <= 32 and (byte == 32 or 9 <= byte <= 13 or byte == 0)


@kernel_in_place
def hash_word(text: np.ndarray, begin: int, end: int) -> np.uint64:
    """Return the hash by which a word is remembered."""
    key = _BASIS
    for at in range(begin, end):
        key = (key ^ np.uint64(text[at])) * _PRIME
    return key


@kernel_in_place
def split(
    text: np.ndarray, at: int, stop: int, begins: np.ndarray, ends: np.ndarray, keys: np.ndarray
) -> tuple[int, int]:
    """Find the next words of a line and hash them; return their number and the place after them."""
    count = 0
    while count < _STEP:
        while at < stop and is_space(text[at]):
            at += 1
        if at == stop:
            break
        begins[count] = at
        key = _BASIS
        while at < stop and not is_space(text[at]):
            key = (key ^ np.uint64(text[at])) * _PRIME
            at += 1
        ends[count], keys[count] = at, key
        count += 1
    return count, at


@kernel_in_place
def touch(keys: np.ndarray, count: int, slots: np.ndarray, records: np.ndarray) -> int:
    """Read what will be looked at for each word: reads that do not wait for each other are fast.

    The sum that is returned means nothing; without it the reads would be left out.
    """
    mask = np.uint64(slots.size - 1)
    read = 0
    for i in range(count):
        read += slots[((keys[i] * _SCATTER) >> _32) & mask]
    for i in range(count):
        read += records[max(slots[((keys[i] * _SCATTER) >> _32) & mask], 0) & 0xFFFFFFFF]
    return read


@kernel_in_place
def find_word(
    text: np.ndarray,
    begin: int,
    end: int,
    key: np.uint64,
    slots: np.ndarray,
    records: np.ndarray,
    record_bytes: np.ndarray,
) -> tuple[np.uint64, int]:
    """Return a word's slot and record; the record is -1 if it is not remembered."""
    mask = np.uint64(slots.size - 1)
    low = np.int64(key & _BITS_31)
    slot = ((key * _SCATTER) >> _32) & mask
    while slots[slot] >= 0:
        taken = slots[slot]
        record = taken & 0xFFFFFFFF
        if taken >> 32 == low and records[record] == end - begin:
            place, at = record * 4 + 8, begin
            while at < end and record_bytes[place] == text[at]:
                place += 1
                at += 1
            if at == end:
                return slot, record
        slot = (slot + _1) & mask
    return slot, -1


@kernel_in_place
def remember(
    text: np.ndarray,
    begin: int,
    end: int,
    key: np.uint64,
    slots: np.ndarray,
    records: np.ndarray,
    record_bytes: np.ndarray,
    sizes: np.ndarray,
    rows: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Keep a word that is not remembered, with the rows from `first` to `last`."""
    size = 2 + (end - begin + 3) // 4 + last - first
    if 2 * sizes[0, 0] >= slots.size or sizes[0, 1] + size > records.size:
        forget(slots, records, record_bytes, sizes)
    slot = find_word(text, begin, end, key, slots, records, record_bytes)[0]
    record = sizes[0, 1]
    slots[slot] = np.int64(key & _BITS_31) << 32 | record
    records[record] = end - begin
    records[record + 1] = last - first
    place = record * 4 + 8
    for at in range(begin, end):
        record_bytes[place] = text[at]
        place += 1
    place = record + 2 + (end - begin + 3) // 4
    for i in range(first, last):
        records[place] = rows[i]
        place += 1
    sizes[0, 0] += 1
    sizes[0, 1] += size


@kernel_in_place
def forget(
    slots: np.ndarray, records: np.ndarray, record_bytes: np.ndarray, sizes: np.ndarray
) -> None:
    """Forget all words but the model's."""
    slots[:] = -1
    sizes[0, 0], sizes[0, 1] = sizes[1, 0], sizes[1, 1]
    mask = np.uint64(slots.size - 1)
    record = 0
    while record < sizes[0, 1]:
        begin = record * 4 + 8
        key = hash_word(record_bytes, begin, begin + records[record])
        slot = ((key * _SCATTER) >> _32) & mask
        while slots[slot] >= 0:
            slot = (slot + _1) & mask
        slots[slot] = np.int64(key & _BITS_31) << 32 | record
        record += 2 + (records[record] + 3) // 4 + records[record + 1]


@kernel_in_place
def is_label(text: np.ndarray, begin: int, end: int) -> bool:
    """Return whether a word that the model does not know is a label: it counts for nothing."""
    at = 0
    while at < len(_PREFIX) and begin + at < end and text[begin + at] == _PREFIX[at]:
        at += 1
    return at == len(_PREFIX)


@kernel_in_place
def hash_ngrams(
    text: np.ndarray,
    begin: int,
    end: int,
    first: int,
    last: int,
    shortest: int,
    longest: int,
    keys: np.ndarray,
) -> int:
    """Hash the n-grams of a word with its marks that begin between two places; return how many.

    A mark alone is no n-gram.
    """
    count = 0
    for start in range(first, last):
        if text[start] < -64:
            continue
        key, length, at = _BASIS, 0, start
        while at < end:
            byte = text[at]
            if byte >= -64:  # the next character: an n-gram is complete
                if length >= shortest and (length > 1 or start != begin):
                    keys[count] = key
                    count += 1
                if length == longest:
                    break
                length += 1
            key = (key ^ np.uint64(byte)) * _PRIME
            at += 1
        if at == end and length >= shortest and length > 1:
            keys[count] = key
            count += 1
    return count


@kernel_in_place
def find_buckets(keys: np.ndarray, count: int, num_buckets: int) -> None:
    """Reduce hashes of 32 bits to buckets: the remainder of a division, by multiplications."""
    buckets = np.uint64(num_buckets)
    inverse = (_1 << _32) // buckets
    for i in range(count):
        key = keys[i] & _LOW
        rest = key - ((key * inverse) >> _32) * buckets  # the remainder, or the divisor too much
        keys[i] = rest - buckets if rest >= buckets else rest


@kernel_in_place
def all_rows(keys: np.ndarray, num_keys: int, first_row: int, rows: np.ndarray, count: int) -> int:
    """Write the rows of buckets after `count` others; return how many there are then."""
    for i in range(num_keys):
        rows[count + i] = first_row + np.int64(keys[i])
    return count + num_keys


@kernel_in_place
def kept_rows(
    keys: np.ndarray,
    num_keys: int,
    first_row: int,
    bits: np.ndarray,
    ranks: np.ndarray,
    rows: np.ndarray,
    count: int,
) -> int:
    """Write the rows of those buckets that have one, as all_rows does."""
    end = count
    for i in range(num_keys):  # no branch: it would be guessed wrong too often
        rows[end] = keys[i]
        end += (bits[keys[i] >> _6] >> (keys[i] & _BITS_63)) & _1
    for i in range(count, end):
        block = np.uint64(rows[i]) >> _6
        # Count the bits below the bucket's, by halves of ever larger groups.
        below = bits[block] & ((_1 << (np.uint64(rows[i]) & _BITS_63)) - _1)
        below -= (below >> _1) & _PAIRS
        below = (below & _QUADS) + ((below >> _2) & _QUADS)
        below = (below + (below >> _4)) & _OCTETS
        rows[i] = first_row + ranks[block] + np.int64((below * _ONES) >> _56)
    return end


@kernel_in_place
def find_rows(
    text: np.ndarray,
    begin: int,
    end: int,
    first: int,
    last: int,
    shortest: int,
    longest: int,
    num_buckets: int,
    first_row: int,
    bits: np.ndarray,
    ranks: np.ndarray,
    keys: np.ndarray,
    rows: np.ndarray,
    count: int,
) -> int:
    """Write the rows of n-grams, see hash_ngrams; return how many rows there are then."""
    before, after = text[begin - 1], text[end]
    text[begin - 1], text[end] = _OPEN, _CLOSE
    num_keys = hash_ngrams(text, begin - 1, end + 1, first, last, shortest, longest, keys)
    text[begin - 1], text[end] = before, after
    find_buckets(keys, num_keys, num_buckets)
    if bits.size == 0:
        return all_rows(keys, num_keys, first_row, rows, count)
    return kept_rows(keys, num_keys, first_row, bits, ranks, rows, count)


@kernel_in_place
def add_waiting(
    total: np.ndarray, rows: np.ndarray, waiting: np.ndarray, counts: np.ndarray
) -> None:
    """Add the rows that wait, four at a time, in their order."""
    count = counts[0]
    i = 0
    while i + 4 <= count:
        a, b, c, d = waiting[i], waiting[i + 1], waiting[i + 2], waiting[i + 3]
        for j in range(total.size):
            total[j] = total[j] + rows[a, j] + rows[b, j] + rows[c, j] + rows[d, j]
        i += 4
    while i < count:
        a = waiting[i]
        for j in range(total.size):
            total[j] += rows[a, j]
        i += 1
    counts[0] = 0
    counts[1] += count


@kernel_in_place
def take_mean(  # noqa: C901, PLR0912, PLR0915  one loop over the words: calls would pass all of this on
    text: np.ndarray,
    start: int,
    stop: int,
    shortest: int,
    longest: int,
    num_buckets: int,
    first_row: int,
    bits: np.ndarray,
    ranks: np.ndarray,
    rows: np.ndarray,
    slots: np.ndarray,
    records: np.ndarray,
    record_bytes: np.ndarray,
    sizes: np.ndarray,
    seen: np.ndarray,
    end_of_line: int,
    longest_word: int,
    begins: np.ndarray,
    ends: np.ndarray,
    word_keys: np.ndarray,
    keys: np.ndarray,
    waiting: np.ndarray,
    counts: np.ndarray,
    mean: np.ndarray,
) -> None:
    """Write the mean of the rows of a line's words and of its end.

    A word that reads as the end of a line ends it.
    """
    counts[:] = 0
    mean[:] = np.float32(0.0)
    record = -1
    while record != end_of_line:
        num_words, start = split(text, start, stop, begins, ends, word_keys)
        touch(word_keys, num_words, slots, records)
        for word in range(num_words + (start == stop)):
            if counts[0] > _MOST_ROWS:
                add_waiting(mean, rows, waiting, counts)
            begin, end, key = begins[word], ends[word], word_keys[word]
            record = -1
            if word == num_words:
                record = end_of_line
            elif end - begin <= longest_word:
                record = find_word(text, begin, end, key, slots, records, record_bytes)[1]
            if record >= 0:
                first = record + 2 + (records[record] + 3) // 4
                count = counts[0]
                for i in range(records[record + 1]):
                    waiting[count + i] = records[first + i]
                counts[0] = count + records[record + 1]
                if record == end_of_line:
                    break
                continue
            if is_label(text, begin, end):
                continue
            first = counts[0]
            for piece in range(begin - 1, end + 1, _STEP):
                if counts[0] > _MOST_ROWS:
                    add_waiting(mean, rows, waiting, counts)
                counts[0] = find_rows(
                    text, begin, end, piece, min(piece + _STEP, end + 1), shortest, longest,
                    num_buckets, first_row, bits, ranks, keys, waiting, counts[0],
                )  # fmt: skip
            if end - begin <= longest_word:
                slot, mark = (key * _SCATTER) >> _48, np.uint8(key >> _24)
                if seen[slot] == mark:
                    remember(
                        text, begin, end, key, slots, records, record_bytes, sizes, waiting, first,
                        counts[0],
                    )  # fmt: skip
                seen[slot] = mark
    add_waiting(mean, rows, waiting, counts)
    share = np.float32(1.0 / np.float64(counts[1]))
    for i in range(mean.size):
        mean[i] *= share


@kernel_in_place
def find_likeliest(tree: Tree, scratch: Scratch) -> tuple[int, np.float32]:
    """Return the leaf with the highest product of probabilities on its way, and the product.

    Nodes are visited in fastText's order: of scores that are equal when rounded the last one
    counts. Types are float32 where C++ has floats, and float64 where it has doubles.
    """
    children, nodes, factors = tree.children, tree.nodes, tree.factors
    mean, open_nodes, open_scores = scratch.mean, scratch.open_nodes, scratch.open_scores
    num_labels = (len(children) + 1) // 2
    best, best_score = -1, np.float32(-np.inf)
    open_nodes[0], open_scores[0] = len(children) - 1, np.float32(0.0)
    num_open = 1
    while num_open:
        num_open -= 1
        node, score = open_nodes[num_open], open_scores[num_open]
        if score < _LEAST or score < best_score:
            continue
        if children[node, 0] < 0:
            best, best_score = node, score
            continue
        row = node - num_labels
        product = np.float32(0.0)
        for i in range(mean.size):
            product += nodes[row, i] * mean[i]
        product *= factors[row]
        second = np.float32(1.0 / np.float64(np.float32(1.0) + np.float32(math.exp(-product))))
        first = np.float32(1.0 - np.float64(second))
        open_nodes[num_open] = children[node, 1]
        open_scores[num_open] = score + np.float32(math.log(np.float64(second) + 1e-5))
        open_nodes[num_open + 1] = children[node, 0]
        open_scores[num_open + 1] = score + np.float32(math.log(np.float64(first) + 1e-5))
        num_open += 2
    return best, np.float32(math.exp(best_score))


@kernel_in_place
def classify(
    text: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    ngrams: Ngrams,
    rows: np.ndarray,
    tree: Tree,
    memory: Memory,
    end_of_line: int,
    longest_word: int,
    scratch: Scratch,
    labels: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Write the likeliest label of each line, and its probability; -1 and 0 for empty lines.

    Args:
        text: The lines with a byte before and after each of them, int8[m].
        starts: Where they begin, int64[n].
        stops: Where they end, int64[n].
        ngrams: Of the model.
        rows: float32[rows, dimensions].
        tree: Of the model.
        memory: Of words.
        end_of_line: The record of the ends of lines.
        longest_word: Bytes of the longest word that may be remembered.
        scratch: Memory.
        labels: int64[n].
        scores: float32[n].
    """
    shortest, longest, num_buckets, first_row, bits, ranks = ngrams
    slots, records, record_bytes, sizes, seen = memory
    begins, ends, word_keys, keys, waiting, counts, mean = scratch[:7]
    for line in range(len(stops)):
        labels[line], scores[line] = -1, np.float32(0.0)
        if starts[line] < stops[line]:
            take_mean(
                text, starts[line], stops[line], shortest, longest, num_buckets, first_row, bits,
                ranks, rows, slots, records, record_bytes, sizes, seen, end_of_line, longest_word,
                begins, ends, word_keys, keys, waiting, counts, mean,
            )  # fmt: skip
            labels[line], scores[line] = find_likeliest(tree, scratch)


@kernel_in_place
def learn(
    text: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    num_words: int,
    end_of_line: int,
    ngrams: Ngrams,
    memory: Memory,
    scratch: Scratch,
) -> int:
    """Remember the words of the model, then its labels, which have no rows.

    Args:
        text: As in classify().
        starts: As in classify().
        stops: As in classify().
        num_words: How many are words.
        end_of_line: Which one is the end of a line: it has no n-grams.
        ngrams: Of the model.
        memory: An empty one.
        scratch: Memory.

    Returns:
        The record of the ends of lines.
    """
    shortest, longest, num_buckets, first_row, bits, ranks = ngrams
    slots, records, record_bytes, sizes, _ = memory
    keys, waiting = scratch.keys, scratch.waiting
    found = -1
    first: int = np.int64(0)  # type: ignore[assignment] # of a literal numba makes a second kernel
    for word in range(len(stops)):
        start, stop, count = starts[word], stops[word], 0
        if word == end_of_line:
            found = sizes[0, 1]
        if word < num_words:
            waiting[0], count = word, 1
        if word < num_words and word != end_of_line:
            count = find_rows(
                text, start, stop, start - 1, stop + 1, shortest, longest, num_buckets, first_row,
                bits, ranks, keys, waiting, count,
            )  # fmt: skip
        key = hash_word(text, start, stop)
        remember(text, start, stop, key, slots, records, record_bytes, sizes, waiting, first, count)
    sizes[1, 0], sizes[1, 1] = sizes[0, 0], sizes[0, 1]
    return found


class Classifier:
    """A model in use. Threads may share it: one at a time is served."""

    def __init__(self, model: Model) -> None:
        """Prepare a model.

        Raises:
            ValueError: Words of the model are longer than is foreseen here.
        """
        words = [*model.words, *model.labels]
        self._longest_word = max(_LONGEST_WORD, *map(len, words))
        if self._longest_word > _STEP - 2:
            raise ValueError(f"it has a word of {self._longest_word} bytes")
        self._ngrams, self._rows = _sorted_rows(model)
        self._tree = Tree(model.nodes, model.factors, model.children)
        self._scratch = _scratch(model)
        self._memory = _memory(words, model.longest)
        self._lock = threading.Lock()
        end = model.words.index(END_OF_LINE)
        with compiling():
            self._end_of_line = learn(
                *_join(words), len(model.words), end, self._ngrams, self._memory, self._scratch
            )
            self.classify([b"-"])

    def classify(
        self, lines: Sequence[bytes]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the number of the likeliest label of each line, and its probability.

        Args:
            lines: UTF-8. Line breaks separate words, as other white space does. A line without
                any byte gets -1 and 0.
        """
        labels, scores = np.empty(len(lines), np.int64), np.empty(len(lines), np.float32)
        with self._lock:
            classify(
                *_join(lines),
                self._ngrams,
                self._rows,
                self._tree,
                self._memory,
                self._end_of_line,
                self._longest_word,
                self._scratch,
                labels,
                scores,
            )
        return labels, scores


def _join(lines: Sequence[bytes]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the lines with a byte around each, writable, and where each one begins and ends."""
    text = bytearray(b"\n").join([b"", *lines, b""])
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    stops = np.cumsum(lengths + 1)
    return np.frombuffer(text, np.int8), stops - lengths, stops


def _sorted_rows(model: Model) -> tuple[Ngrams, npt.NDArray[np.float32]]:
    """Return where n-grams have rows, and the rows, those of n-grams sorted by bucket."""
    num_words, rows, longest = len(model.words), model.rows, model.longest
    bits, ranks = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    if model.kept is not None:
        has_row = model.kept >= 0
        buckets = np.flatnonzero(has_row)
        padded = np.zeros((model.num_buckets // 64 + 1) * 64, np.bool_)
        padded[: has_row.size] = has_row
        bits = np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)
        ranks = np.searchsorted(buckets, np.arange(bits.size) * 64).astype(np.int32)
        rows = np.concatenate([rows[:num_words], rows[num_words + model.kept[buckets]]])
        longest = longest if buckets.size else 0
    ngrams = Ngrams(
        max(model.shortest, 1), max(longest, 0), max(model.num_buckets, 1), num_words, bits, ranks
    )
    return ngrams, rows


def _memory(words: Sequence[bytes], longest: int) -> Memory:
    """Return a memory with room for the model's words, with all their n-grams, and others."""
    most_words = max(_MOST_WORDS, 1 << (2 * len(words)).bit_length())
    size = 16 * most_words + sum(4 + len(word) + longest * (len(word) + 2) for word in words)
    records = np.empty(size, np.int32)
    return Memory(
        slots=np.full(2 * most_words, -1, np.int64),
        records=records,
        record_bytes=records.view(np.int8),
        sizes=np.zeros((2, 2), np.int64),
        seen=np.zeros(1 << 16, np.uint8),
    )


def _scratch(model: Model) -> Scratch:
    most_ngrams = _STEP * max(model.longest, 1)
    return Scratch(
        begins=np.zeros(_STEP + 1, np.int64),
        ends=np.zeros(_STEP + 1, np.int64),
        word_keys=np.zeros(_STEP + 1, np.uint64),
        keys=np.empty(most_ngrams, np.uint64),
        waiting=np.empty(_MOST_ROWS + most_ngrams + 1, np.int32),
        counts=np.zeros(2, np.int64),
        mean=np.empty(model.rows.shape[1], np.float32),
        open_nodes=np.empty(len(model.children) + 1, np.int64),
        open_scores=np.empty(len(model.children) + 1, np.float32),
    )
