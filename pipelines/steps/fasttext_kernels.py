"""fastText's classifiers in compiled code: its labels, and its scores to the bit.

    a line ─▶ words ─▶ numbers of rows, of words and of n-grams ─▶ mean of the rows ─▶ likeliest

A sum of float32 numbers depends on the order of the additions, so rows are added as fastText adds
them: word after word, a word's own row first, then those of its n-grams, by where they begin and
then by length. What can be saved is finding them: a bitmap tells at once that most n-grams have
none.

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

from pipelines.compiled import kernel_in_place
from pipelines.steps.fasttext_model import END_OF_LINE, LABEL_PREFIX, Model, tree

_MOST_ROWS = 1 << 12
"""Rows that wait to be added, but for those of the n-grams that begin with one more character."""

_PREFIX = np.frombuffer(LABEL_PREFIX, np.int8)
_OPEN, _CLOSE = ord("<"), ord(">")
_BASIS, _PRIME = np.uint64(2166136261), np.uint64(16777619)  # FNV-1a, of 32 bits
_SCATTER = np.uint64(0x9E3779B97F4A7C15)
_LOW, _BITS_63 = np.uint64(2**32 - 1), np.uint64(63)
_1, _6, _32 = np.uint64(1), np.uint64(6), np.uint64(32)
_LEAST = np.float32(math.log(1e-5))


class Words(NamedTuple):
    """The words of a model, then its labels."""

    slots: np.ndarray
    """int32[2 ** k], by hash: number of a word; -1: free."""
    text: np.ndarray
    """int8[n], their bytes with one between them."""
    starts: np.ndarray
    """int64[words and labels], where each begins."""
    stops: np.ndarray
    """int64[words and labels], where each ends."""


class Ngrams(NamedTuple):
    """Which n-grams there are, and where their rows are."""

    shortest: int
    longest: int
    num_buckets: int
    bits: np.ndarray
    """uint64[num_buckets / 64 + 1], a bit for each bucket, lowest first: whether it has a row.

    Empty if all have.
    """
    places: np.ndarray
    """int32[num_buckets], where the row of each is among those after the words'; empty likewise."""


class Tree(NamedTuple):
    """As in Model."""

    nodes: np.ndarray
    factors: np.ndarray
    children: np.ndarray


class Scratch(NamedTuple):
    """Memory for what is made of one line."""

    waiting: np.ndarray
    """int64[n], rows of words, and buckets after them, that wait to be added."""
    mean: np.ndarray
    """float32[dimensions], the sum of rows, then their mean."""
    open_nodes: np.ndarray
    """int64[labels · 2], nodes of the tree that were not visited yet."""
    open_scores: np.ndarray


@kernel_in_place
def is_space(byte: int) -> bool:
    """Return whether a byte separates words."""
    return 0 <= byte <= 32 and (byte == 32 or 9 <= byte <= 13 or byte == 0)


@kernel_in_place
def find_word(
    text: np.ndarray,
    begin: int,
    end: int,
    key: np.uint64,
    slots: np.ndarray,
    known: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
) -> tuple[np.uint64, int]:
    """Return the slot of a word, and its number; -1 if the model does not know it."""
    mask = np.uint64(slots.size - 1)
    slot = ((key * _SCATTER) >> _32) & mask
    while slots[slot] >= 0:
        word = slots[slot]
        if stops[word] - starts[word] == end - begin:
            place, at = starts[word], begin
            while at < end and known[place] == text[at]:
                place += 1
                at += 1
            if at == end:
                return slot, word
        slot = (slot + _1) & mask
    return slot, -1


@kernel_in_place
def learn(words: Words) -> None:
    """Fill the slots; of words that are the same the first one counts."""
    slots, text, starts, stops = words
    for word in range(len(starts)):
        key = _BASIS
        for at in range(starts[word], stops[word]):
            key = (key ^ np.uint64(text[at])) * _PRIME
        slot, same = find_word(text, starts[word], stops[word], key, slots, text, starts, stops)
        if same < 0:
            slots[slot] = word


@kernel_in_place
def is_label(text: np.ndarray, begin: int, end: int) -> bool:
    """Return whether a word that the model does not know is a label: it counts for nothing."""
    at = 0
    while at < len(_PREFIX) and begin + at < end and text[begin + at] == _PREFIX[at]:
        at += 1
    return at == len(_PREFIX)


@kernel_in_place
def add_waiting(
    total: np.ndarray,
    rows: np.ndarray,
    num_words: int,
    places: np.ndarray,
    waiting: np.ndarray,
    count: int,
) -> None:
    """Add the rows that wait, four at a time, in their order."""
    if places.size:
        for i in range(count):
            if waiting[i] >= num_words:
                waiting[i] = num_words + places[waiting[i] - num_words]
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


@kernel_in_place
def find_ngrams(
    text: np.ndarray,
    first: int,
    begin: int,
    end: int,
    shortest: int,
    longest: int,
    num_buckets: int,
    bits: np.ndarray,
    num_words: int,
    waiting: np.ndarray,
    count: int,
) -> int:
    """Let those n-grams of a word wait that begin at a place and have a row; return how many wait.

    The word lies between two marks, at `begin` and before `end`; a mark alone is no n-gram.
    """
    buckets = np.uint64(num_buckets)
    inverse = (_1 << _32) // buckets
    key, length, at = _BASIS, 0, first
    while True:
        if at == end or text[at] >= -64:  # the next character: an n-gram is complete
            if length >= shortest and (length > 1 or (first != begin and at != end)):
                # The remainder of a division, by a multiplication, or the divisor too much.
                low = key & _LOW
                rest = low - ((low * inverse) >> _32) * buckets
                bucket = rest - buckets if rest >= buckets else rest
                # No branch: it would be guessed wrong too often.
                waiting[count] = num_words + np.int64(bucket)
                has_row = _1
                if bits.size:
                    has_row = (bits[bucket >> _6] >> (bucket & _BITS_63)) & _1
                count = int(count + np.int64(has_row))
            if length == longest or at == end:
                return count
            length += 1
        key = (key ^ np.uint64(text[at])) * _PRIME
        at += 1


@kernel_in_place
def add_full(
    total: np.ndarray,
    rows: np.ndarray,
    num_words: int,
    places: np.ndarray,
    waiting: np.ndarray,
    count: int,
    added: int,
) -> tuple[int, int]:
    """Add the rows that wait if there is no room for more; return how many wait, and were added."""
    if count <= _MOST_ROWS:
        return count, added
    add_waiting(total, rows, num_words, places, waiting, count)
    return 0, added + count


@kernel_in_place
def read_word(
    text: np.ndarray,
    start: int,
    stop: int,
    end_of_line: int,
    slots: np.ndarray,
    known: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
) -> tuple[int, int, int]:
    """Return where the next word begins and ends, and its number; -1 if it is not known.

    After the last one stands the end of the line.
    """
    begin = start
    while begin < stop and is_space(text[begin]):
        begin += 1
    at, key = begin, _BASIS
    while at < stop and not is_space(text[at]):
        key = (key ^ np.uint64(text[at])) * _PRIME
        at += 1
    word = end_of_line
    if begin < stop:
        word = find_word(text, begin, at, key, slots, known, starts, stops)[1]
    return begin, at, word


@kernel_in_place
def add_ngrams(
    text: np.ndarray,
    begin: int,
    end: int,
    shortest: int,
    longest: int,
    num_buckets: int,
    bits: np.ndarray,
    places: np.ndarray,
    rows: np.ndarray,
    num_words: int,
    waiting: np.ndarray,
    mean: np.ndarray,
    count: int,
    added: int,
) -> tuple[int, int]:
    """Let all n-grams of a word wait, or be added; return how many wait, and were added."""
    before, after = text[begin - 1], text[end]
    text[begin - 1], text[end] = _OPEN, _CLOSE
    for first in range(begin - 1, end + 1):
        if text[first] >= -64:
            count, added = add_full(mean, rows, num_words, places, waiting, count, added)
            count = find_ngrams(
                text, first, begin - 1, end + 1, shortest, longest, num_buckets, bits, num_words,
                waiting, count,
            )  # fmt: skip
    text[begin - 1], text[end] = before, after
    return count, added


@kernel_in_place
def take_mean(
    text: np.ndarray,
    start: int,
    stop: int,
    shortest: int,
    longest: int,
    num_buckets: int,
    bits: np.ndarray,
    places: np.ndarray,
    rows: np.ndarray,
    num_words: int,
    end_of_line: int,
    slots: np.ndarray,
    known: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    waiting: np.ndarray,
    mean: np.ndarray,
) -> None:
    """Write the mean of the rows of a line's words and of its end.

    A word that reads as the end of a line ends it.
    """
    mean[:] = np.float32(0.0)
    count = added = 0
    word, end = -1, start
    while word != end_of_line:
        begin, end, word = read_word(text, end, stop, end_of_line, slots, known, starts, stops)
        count, added = add_full(mean, rows, num_words, places, waiting, count, added)
        waiting[count] = word
        count += 0 <= word < num_words
        if word < 0:
            counts = longest > 0 and not is_label(text, begin, end)
        else:
            counts = longest > 0 and word < num_words and word != end_of_line
        if counts:
            count, added = add_ngrams(
                text, begin, end, shortest, longest, num_buckets, bits, places, rows, num_words,
                waiting, mean, count, added,
            )  # fmt: skip
    add_waiting(mean, rows, num_words, places, waiting, count)
    share = np.float32(1.0 / np.float64(added + count))
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
    words: Words,
    num_words: int,
    end_of_line: int,
    ngrams: Ngrams,
    rows: np.ndarray,
    tree: Tree,
    scratch: Scratch,
    labels: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Write the likeliest label of each line, and its probability; -1 and 0 for empty lines.

    Args:
        text: The lines with a byte before and after each of them, int8[m].
        starts: Where they begin, int64[n].
        stops: Where they end, int64[n].
        words: Of the model, with its labels.
        num_words: How many of them are words.
        end_of_line: Which one is the end of a line.
        ngrams: Of the model.
        rows: float32[rows, dimensions].
        tree: Of the model.
        scratch: Memory.
        labels: int64[n].
        scores: float32[n].
    """
    slots, known, known_starts, known_stops = words
    shortest, longest, num_buckets, bits, places = ngrams
    for line in range(len(stops)):
        labels[line], scores[line] = -1, np.float32(0.0)
        if starts[line] < stops[line]:
            take_mean(
                text, starts[line], stops[line], shortest, longest, num_buckets, bits, places, rows,
                num_words, end_of_line, slots, known, known_starts, known_stops, scratch.waiting,
                scratch.mean,
            )  # fmt: skip
            labels[line], scores[line] = find_likeliest(tree, scratch)


class Classifier:
    """A model in use. Threads may share it: one at a time is served."""

    def __init__(self, model: Model) -> None:
        """Prepare a model that has a tree."""
        names = [*model.words, *(label.encode() for label in model.labels)]
        slots = np.full(1 << (2 * len(names)).bit_length(), -1, np.int32)
        self._words = Words(slots, *_join(names))
        self._num_words, self._end_of_line = len(model.words), model.words.index(END_OF_LINE)
        rows, norms = model.input.rows()
        # A norm is applied to each number of a row before the row is added to others.
        rows *= norms[:, np.newaxis]
        self._rows = rows
        self._ngrams = _ngrams(model)
        self._tree = Tree(*model.output.rows(), tree(model.counts))
        num_nodes = len(self._tree.children)
        self._scratch = Scratch(
            waiting=np.empty(_MOST_ROWS + self._ngrams.longest + 2, np.int64),
            mean=np.empty(rows.shape[1], np.float32),
            open_nodes=np.empty(num_nodes + 1, np.int64),
            open_scores=np.empty(num_nodes + 1, np.float32),
        )
        self._lock = threading.Lock()
        learn(self._words)
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
                self._words,
                self._num_words,
                self._end_of_line,
                self._ngrams,
                self._rows,
                self._tree,
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


def _ngrams(model: Model) -> Ngrams:
    longest = max(model.longest, 0)
    bits, places = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    if model.kept is not None:
        places = np.full(model.num_buckets, -1, np.int32)
        places[model.kept[:, 0]] = model.kept[:, 1]
        has_row = np.zeros((model.num_buckets // 64 + 1) * 64, np.bool_)
        has_row[model.kept[:, 0]] = True
        bits = np.packbits(has_row, bitorder="little").view("<u8").astype(np.uint64)
        longest = longest if len(model.kept) else 0
    return Ngrams(max(model.shortest, 1), longest, max(model.num_buckets, 1), bits, places)
