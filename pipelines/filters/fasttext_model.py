"""fastText's files of classifiers, read into arrays.

    magic, version │ arguments │ words, labels, kept buckets │ input rows │ output rows

All numbers are little-endian and packed. Rows are float32 numbers (.bin) or product codes (.ftz):
a byte for each piece of a row names one of 256 centroids, and, if norms were coded apart, a byte
for the whole row names its factor. The layout and the tree are those of fastText 0.9.2
(https://github.com/facebookresearch/fastText: src/fasttext.cc, dictionary.cc, quantmatrix.cc,
productquantizer.cc, loss.cc).
"""

import math
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

END_OF_LINE = b"</s>"
"""The word that a line break counts as."""

LABEL_PREFIX = b"__label__"
"""How labels begin; other words that do count for nothing."""

_MAGIC, _VERSIONS = 793712314, (11, 12)
_WITHOUT_NGRAMS = 11
"""Classifiers of this version have no n-grams of characters, whatever their arguments say."""
_HIERARCHICAL_SOFTMAX, _SUPERVISED = 1, 3
_LOSSES = (1, 2, 3, 4)
_READABLE = (_SUPERVISED, _HIERARCHICAL_SOFTMAX, 1)
"""Kind, loss, and most words of an n-gram of words."""
_WORD, _LABEL = 0, 1
_CENTROIDS = 256
_ENDLESS = 10**15
"""The count of a node that is not made yet: above all others."""
_LONGEST_WORD, _LONGEST_NGRAM = 1 << 16, 255
"""Bytes and characters; more are a sign of damage, and fastText lists all n-grams of all words."""
_CHUNK = 1 << 24
_ENTRY = struct.Struct("<qb")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A classifier with n-grams of characters, but not of words, and hierarchical softmax."""

    shortest: int
    """Characters of the shortest n-grams of a word, which begins with `<` and ends with `>`."""
    longest: int
    """Characters of the longest ones; 0 if the model has no n-grams."""
    num_buckets: int
    """N-grams are told apart by their hashes modulo this number."""
    words: tuple[bytes, ...]
    """The words with a row of their own, END_OF_LINE among them: row i is that of word i."""
    labels: tuple[bytes, ...]
    """The labels, most frequent first."""
    kept: npt.NDArray[np.int32] | None
    """Shape (num_buckets,): where each bucket's row is among those after the words'; -1: nowhere.

    None if every bucket has its row, in the order of the buckets.
    """
    rows: npt.NDArray[np.float32]
    """Shape (words and kept buckets, dimensions)."""
    nodes: npt.NDArray[np.float32]
    """Shape (labels - 1, dimensions): a row for each inner node of the tree."""
    factors: npt.NDArray[np.float32]
    """Shape (labels - 1,): by which the product of such a row and a text's mean is multiplied."""
    children: npt.NDArray[np.int32]
    """Shape (2 · labels - 1, 2): the two children of each node of the tree, or -1 twice.

    Node i < labels is the leaf of label i, node labels + i has row i of `nodes`, the last one is
    the root. The sigmoid of a node is the probability of its second child.
    """


def read_model(path: Path) -> Model:
    """Return the classifier in a file.

    Raises:
        ValueError: It is no such file, ends early, or has another kind of model.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _model(_Cursor(data))
        except struct.error as error:
            raise ValueError(f"it ends early: {error}") from error


def is_readable(path: Path) -> bool:
    """Return whether a classifier that check_file has passed is of a kind that read_model reads.

    That is lid.176's. GlotLID and OpenLID have a flat softmax, and are not.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(data)
        cursor.numbers("ii")
        word_ngrams, loss, kind = cursor.numbers("12id")[5:8]
    return (kind, loss, word_ngrams) == _READABLE


def check_file(path: Path) -> tuple[bytes, ...]:
    """Return the labels of a classifier whose tables are as large as its numbers say, and fit.

    fastText itself believes every number of a file: it asks for as much memory, and reads beyond
    tables that are too small. Classifiers of other kinds than `read_model` reads pass as well.

    Raises:
        ValueError: The file is no classifier, or it is damaged.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _check_tables(_Cursor(data))
        except struct.error as error:
            raise ValueError(f"it ends early: {error}") from error


class _Cursor:
    """A place in a file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.place = 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self.data, self.place)
        self.place += struct.calcsize(f"<{form}")
        return values

    def array(self, dtype: str, *shape: int) -> npt.NDArray[Any]:
        """Return a copy: what is in the file is not aligned."""
        size = max(0, int(np.prod(shape, dtype=np.int64))) * np.dtype(dtype).itemsize
        if size > len(self.data) - self.place:
            raise struct.error(f"{size} bytes from {self.place} on, of {len(self.data)}")
        array = np.frombuffer(self.data[self.place : self.place + size], dtype)
        self.place += size
        return array.reshape(shape).copy()

    def pass_over(self, dtype: str, *shape: int) -> None:
        """Go behind an array, and check that each number of floats is one."""
        if any(length < 0 for length in shape):
            raise ValueError(f"it has a table of the shape {shape}")
        left = math.prod(shape) * np.dtype(dtype).itemsize
        if left > len(self.data) - self.place:
            raise struct.error(f"{left} bytes from {self.place} on, of {len(self.data)}")
        while left:
            chunk = self.data[self.place : self.place + min(left, _CHUNK)]
            if dtype == "<f4" and not np.isfinite(np.frombuffer(chunk, dtype)).all():
                raise ValueError("it has numbers that are none")
            self.place += len(chunk)
            left -= len(chunk)

    def entry(self) -> tuple[bytes, int, int]:
        """Return a word or label, how often it occurred, and which of the two it is."""
        end = self.data.find(b"\0", self.place)
        if end < 0:
            raise struct.error(f"no word ends after {self.place}")
        word = self.data[self.place : end]
        count, kind = _ENTRY.unpack_from(self.data, end + 1)  # models of the web have millions
        self.place = end + 1 + _ENTRY.size
        return word, count, kind


def _check_tables(file: _Cursor) -> tuple[bytes, ...]:
    """Go through a file and return the labels."""
    magic, version = file.numbers("ii")
    if magic != _MAGIC or not 0 < version <= max(_VERSIONS):
        raise ValueError("it does not begin as fastText's models do")
    arguments = file.numbers("12id")
    dimensions = arguments[0]
    word_ngrams, loss, kind, num_buckets, _, longest = arguments[5:11]
    if kind != _SUPERVISED or loss not in _LOSSES:
        raise ValueError("it is no classifier, but vectors of words")
    size, num_words, num_labels, _, num_kept = file.numbers("iiiqq")
    if num_words < 0 or num_labels < 1 or size != num_words + num_labels:
        raise ValueError(f"it has {num_words} words and {num_labels} labels")
    labels = _check_entries(file, num_words, num_labels)
    has_ngrams = word_ngrams > 1 or (longest > 0 and version != _WITHOUT_NGRAMS)
    num_ngrams = num_buckets if has_ngrams else 0
    if num_kept >= 0:
        kept = file.array("<i4", num_kept, 2)
        if kept.size and kept.min() < 0:
            raise ValueError("it keeps a bucket that it does not have")
        num_ngrams = int(kept[:, 1].max(initial=-1)) + 1
    if longest > _LONGEST_NGRAM or (has_ngrams and num_buckets < 1):
        raise ValueError(f"it has n-grams of {longest} characters in {num_buckets} buckets")
    coded = _flag(file)
    rows = _check_rows(file, coded=coded)
    nodes = _check_rows(file, coded=_flag(file) and coded)
    if (
        rows[0] < num_words + num_ngrams
        or nodes[0] < num_labels
        or {rows[1], nodes[1]} != {dimensions}
        or file.place != len(file.data)
    ):
        raise ValueError("its tables do not fit each other")
    return labels


def _check_entries(file: _Cursor, num_words: int, num_labels: int) -> tuple[bytes, ...]:
    """Go behind the words and labels and return the labels."""
    labels = []
    for i in range(num_words + num_labels):
        word, count, kind = file.entry()
        if (
            kind != (_WORD if i < num_words else _LABEL)
            or not 0 <= count < _ENDLESS
            or len(word) > _LONGEST_WORD
        ):
            raise ValueError(f"its entry {i} is no word or label, or out of order")
        if kind == _LABEL:
            labels.append(word)
    return tuple(labels)


def _flag(file: _Cursor) -> bool:
    (flag,) = file.numbers("B")
    if flag > 1:
        raise ValueError("its tables are neither plain nor coded")
    return bool(flag)


def _check_rows(file: _Cursor, *, coded: bool) -> tuple[int, int]:
    """Go behind a table and return its shape."""
    if not coded:
        shape = file.numbers("qq")
        file.pass_over("<f4", *shape)
        return shape
    with_norms = _flag(file)
    num_rows, width, num_codes = file.numbers("qqi")
    file.pass_over("u1", num_codes)
    if num_codes != num_rows * _check_centroids(file, width):
        raise ValueError("its product codes do not fit its centroids")
    if with_norms:
        file.pass_over("u1", num_rows)
        _check_centroids(file, 1)
    return num_rows, width


def _check_centroids(file: _Cursor, width: int) -> int:
    """Go behind the centroids of rows of this width; return how many pieces a row has."""
    total, num_pieces, piece, last_piece = file.numbers("4i")
    fits = num_pieces > 0 and 0 < last_piece <= piece and total == width
    if not fits or (num_pieces - 1) * piece + last_piece != total:
        raise ValueError("its centroids do not fit its rows")
    file.pass_over("<f4", total, _CENTROIDS)
    return int(num_pieces)


def _model(file: _Cursor) -> Model:
    magic, version = file.numbers("ii")
    if magic != _MAGIC or version not in _VERSIONS:
        raise ValueError("it does not begin as fastText's models do")
    arguments = file.numbers("12id")
    word_ngrams, loss, kind, num_buckets, shortest, longest = arguments[5:11]
    if (kind, loss, word_ngrams) != _READABLE:
        raise ValueError("it has another loss than hierarchical softmax, or n-grams of words")
    _, num_words, num_labels, _, num_kept = file.numbers("iiiqq")
    words, _ = _entries(file, num_words, _WORD)
    labels, counts = _entries(file, num_labels, _LABEL)
    kept = None if num_kept < 0 else _places(file.array("<i4", num_kept, 2), num_buckets)
    (coded,) = file.numbers("?")
    rows, norms = _coded(file) if coded else _plain(file)
    (nodes_coded,) = file.numbers("?")
    nodes, factors = _coded(file) if coded and nodes_coded else _plain(file)
    model = Model(
        shortest=shortest,
        longest=0 if version == _WITHOUT_NGRAMS else longest,
        num_buckets=num_buckets,
        words=words,
        labels=labels,
        kept=kept,
        # A factor is applied to each number of a row before the row is added to others.
        rows=rows * norms[:, np.newaxis] if coded else rows,
        nodes=nodes,
        factors=factors,
        children=_tree(counts),
    )
    _check(model)
    return model


def _entries(file: _Cursor, number: int, kind: int) -> tuple[tuple[bytes, ...], list[int]]:
    entries = [file.entry() for _ in range(number)]
    if any(entry[2] != kind for entry in entries):
        raise ValueError("its words do not all come before its labels")
    return tuple(word for word, _, _ in entries), [count for _, count, _ in entries]


def _places(pairs: npt.NDArray[np.int32], num_buckets: int) -> npt.NDArray[np.int32]:
    places = np.full(num_buckets, -1, np.int32)
    if pairs.size and not 0 <= pairs[:, 0].min() <= pairs[:, 0].max() < num_buckets:
        raise ValueError("it keeps a bucket that it does not have")
    places[pairs[:, 0]] = pairs[:, 1]
    return places


def _plain(file: _Cursor) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    rows = file.array("<f4", *file.numbers("qq"))
    return rows, np.ones(len(rows), np.float32)


def _coded(file: _Cursor) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return rows without their norms, and the norms."""
    with_norms, num_rows, _, num_codes = file.numbers("?qqi")
    codes = file.array("u1", num_rows, num_codes // max(num_rows, 1))
    tables = _centroids(file)
    if len(tables) != codes.shape[1]:
        raise ValueError("its product codes do not fit its centroids")
    rows = np.concatenate([table[codes[:, i]] for i, table in enumerate(tables)], axis=1)
    if not with_norms:
        return rows, np.ones(num_rows, np.float32)
    norm_codes = file.array("u1", num_rows)
    return rows, _centroids(file)[0][norm_codes, 0]


def _centroids(file: _Cursor) -> list[npt.NDArray[np.float32]]:
    """Return for each piece of a row its 256 centroids; the last piece can be shorter."""
    _, num_pieces, width, last_width = file.numbers("4i")
    widths = [width] * (num_pieces - 1) + [last_width]
    return [file.array("<f4", _CENTROIDS, width) for width in widths]


def _tree(counts: Sequence[int]) -> npt.NDArray[np.int32]:
    """Return the children of a Huffman tree's nodes, for counts that never rise.

    Each new node takes the rarest two of the labels and nodes that have no parent; its first child
    is the rarer one. Of equal ones the node made earliest comes before the last label.
    """
    num_labels = len(counts)
    weights = [*counts, *[_ENDLESS] * (num_labels - 1)]
    children = np.full((len(weights), 2), -1, np.int32)
    label, node = num_labels - 1, num_labels
    for parent in range(num_labels, len(weights)):
        weight = 0
        for side in range(2):
            if label >= 0 and weights[label] < weights[node]:
                child, label = label, label - 1
            else:
                child, node = node, node + 1
            children[parent, side] = child
            weight += weights[child]
        weights[parent] = weight
    return children


def _check(model: Model) -> None:
    num_ngrams = model.num_buckets if model.longest > 0 else 0
    if model.kept is not None:
        num_ngrams = int(model.kept.max(initial=-1)) + 1
    fits = (
        END_OF_LINE in model.words
        and len(model.rows) >= len(model.words) + num_ngrams
        and len(model.nodes) >= len(model.labels) - 1 >= 0
        and model.rows.shape[1] == model.nodes.shape[1]
        and (model.longest <= 0 or model.num_buckets > 0)
        and bool(np.isfinite(model.rows).all() and np.isfinite(model.nodes).all())
    )
    if not fits:
        raise ValueError("its tables do not fit each other")
