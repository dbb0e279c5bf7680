"""fastText's files of classifiers, read and checked in one pass.

    magic, version │ arguments │ words, labels, kept buckets │ input rows │ output rows

All numbers are little-endian and packed. Rows are float32 numbers (.bin) or product codes (.ftz):
a byte for each piece of a row names one of 256 centroids, and, if norms were coded apart, a byte
for the whole row names its factor. The layout and the tree are those of fastText 0.9.2
(https://github.com/facebookresearch/fastText: src/fasttext.cc, dictionary.cc, quantmatrix.cc,
productquantizer.cc, loss.cc).
"""

import hashlib
import importlib
import importlib.metadata
import math
import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shards.errors import UserError

END_OF_LINE = b"</s>"
"""The word that a line break counts as."""

LABEL_PREFIX = b"__label__"
"""How labels begin; other words that do count for nothing."""

_MAGIC, _LATEST = 793712314, 12
_WITHOUT_NGRAMS = 11
"""Classifiers of this version have no n-grams of characters, whatever their arguments say."""
_HIERARCHICAL_SOFTMAX, _SUPERVISED = 1, 3
_LOSSES = (1, 2, 3, 4)
_WORD, _LABEL = 0, 1
_CENTROIDS = 256
_ENDLESS = 10**15
"""The count of a node that is not made yet: above all others."""
_LONGEST_WORD, _LONGEST_NGRAM = 1 << 16, 255
"""Bytes and characters; more are a sign of damage, and fastText lists all n-grams of all words."""
_CHUNK = 1 << 22
_ENTRY = struct.Struct("<qb")

_Floats = npt.NDArray[np.float32]
_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of numbers, as they lie in the file: read when they are asked for."""

    shape: tuple[int, int]
    """Rows, and numbers in each."""
    plain: _Floats | None = None
    """The numbers; None if they are coded."""
    codes: _Bytes | None = None
    """Shape (rows, pieces)."""
    centroids: Sequence[_Floats] = ()
    """By piece, shape (256, width of the piece)."""
    norm_codes: _Bytes | None = None
    """Shape (rows,); None if norms were not coded apart."""
    norms: _Floats | None = None
    """Shape (256,)."""

    def rows(self) -> tuple[_Floats, _Floats]:
        """Return the rows without their norms, and the norms, of shape (rows,)."""
        if self.codes is None:
            return np.array(self.plain), np.ones(self.shape[0], np.float32)
        pieces = [table[self.codes[:, i]] for i, table in enumerate(self.centroids)]
        ones = np.ones(self.shape[0], np.float32)
        norms = ones if self.norms is None else self.norms[self.norm_codes]
        return np.concatenate(pieces, axis=1), norms


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A classifier whose tables are as large as its numbers say, and fit each other."""

    shortest: int
    """Characters of the shortest n-grams of a word, which begins with `<` and ends with `>`."""
    longest: int
    """Characters of the longest ones; 0 if the model has no n-grams."""
    num_buckets: int
    """N-grams are told apart by their hashes modulo this number."""
    has_tree: bool
    """Whether it has hierarchical softmax, and no n-grams of words: lid.176 does.

    GlotLID and OpenLID have a flat softmax.
    """
    words: Sequence[bytes]
    """The words with a row of their own, END_OF_LINE among them: row i is that of word i.

    Empty if it has no tree: models of the web have millions, and nobody asks.
    """
    labels: Sequence[str]
    """The labels, most frequent first."""
    counts: Sequence[int]
    """How often each label occurred."""
    kept: npt.NDArray[np.int32] | None
    """Shape (kept, 2): buckets, and where each one's row is among those after the words'.

    None if every bucket has its row, in the order of the buckets.
    """
    input: Table
    """Rows of words, then of buckets."""
    output: Table
    """Rows of labels; of a tree, those of its inner nodes."""


def read_model(path: Path) -> Model:
    """Return the classifier in a file, which stays mapped as long as its tables are in use.

    fastText itself believes every number of a file: it asks for as much memory, and reads beyond
    tables that are too small. So it should be given none that this function refuses.

    Raises:
        ValueError: The file is no classifier, or it is damaged.
    """
    with path.open("rb") as file:
        cursor = _Cursor(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    try:
        return _read(cursor)
    except struct.error as error:
        raise ValueError(f"it ends early: {error}") from error


def load_reference(path: Path, *, wanted: str) -> tuple[Any, Model]:
    """Return fastText's own C++ object for a classifier, and what its file holds.

    Args:
        path: The file.
        wanted: What errors say was expected.

    Raises:
        UserError: The file is missing, damaged or another one; no fastText is installed.
    """
    try:
        fasttext: Any = importlib.import_module("fasttext")
    except ImportError as error:
        raise UserError(
            f"fastText cannot be imported ({error}): pip install fasttext-predict."
        ) from error
    try:
        model = read_model(path)
        # The bound C++ object: the Python wrapper of some distributions fails under NumPy 2.
        library = fasttext.load_model(str(path)).f
        library.predict("All is well.\n", 1, 0.0, "strict")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}; {wanted}") from error
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{path} is no fastText classifier ({error}); {wanted}") from error
    return library, model


@lru_cache(maxsize=1)  # it looks at every package
def reference_engine() -> str:
    """Return which distribution provides the module `fasttext` (several can), and its version."""
    owners = [
        distribution.name
        for distribution in importlib.metadata.distributions()
        if "fasttext" in (distribution.read_text("top_level.txt") or "").split()
    ]
    if not owners:  # the lists of all files tell as well, but take fifty times as long to read
        owners = importlib.metadata.packages_distributions().get("fasttext", ["fasttext"])
    versions = ((owner, importlib.metadata.version(owner)) for owner in sorted({*owners}))
    return " or ".join(f"{owner} {version}" for owner, version in versions)


def file_hash(path: Path, *, wanted: str = "expected the file of a model.") -> str:
    """Return the SHA-256 of a model's file, in hexadecimal.

    Raises:
        UserError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; {wanted}") from error


class _Cursor:
    """A place in a file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.place = 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self.data, self.place)
        self.place += struct.calcsize(f"<{form}")
        return values

    def flag(self) -> bool:
        (flag,) = self.numbers("B")
        if flag > 1:
            raise ValueError("its tables are neither plain nor coded")
        return bool(flag)

    def array(self, dtype: str, *shape: int) -> npt.NDArray[Any]:
        """Return what is in the file, not aligned, after a check that floats are numbers."""
        if any(length < 0 for length in shape):
            raise ValueError(f"it has a table of the shape {shape}")
        count = math.prod(shape)
        size = count * np.dtype(dtype).itemsize
        if size > len(self.data) - self.place:
            raise struct.error(f"{size} bytes from {self.place} on, of {len(self.data)}")
        array = np.frombuffer(self.data, dtype, count, self.place) if count else np.zeros(0, dtype)
        if dtype == "<f4":
            chunks = (array[start : start + _CHUNK] for start in range(0, count, _CHUNK))
            if not all(np.isfinite(chunk).all() for chunk in chunks):
                raise ValueError("it has numbers that are none")
        self.place += size
        return array.reshape(shape)

    def entries(self, kind: int, numbers: range) -> Iterator[tuple[bytes, int]]:
        """Yield words or labels of these numbers, and how often each occurred."""
        for i in numbers:
            end = self.data.find(b"\0", self.place)
            if end < 0:
                raise struct.error(f"no word ends after {self.place}")
            name = self.data[self.place : end]
            count, found = _ENTRY.unpack_from(self.data, end + 1)
            if found != kind or not 0 <= count < _ENDLESS or len(name) > _LONGEST_WORD:
                raise ValueError(f"its entry {i} is no word or label, or out of order")
            self.place = end + 1 + _ENTRY.size
            yield name, count


def _read(file: _Cursor) -> Model:
    magic, version = file.numbers("ii")
    if magic != _MAGIC or not 0 < version <= _LATEST:
        raise ValueError("it does not begin as fastText's models do")
    arguments = file.numbers("12id")
    word_ngrams, loss, kind, num_buckets, shortest, longest = arguments[5:11]
    if kind != _SUPERVISED or loss not in _LOSSES:
        raise ValueError("it is no classifier, but vectors of words")
    size, num_words, num_labels, _, num_kept = file.numbers("iiiqq")
    if num_words < 0 or num_labels < 1 or size != num_words + num_labels:
        raise ValueError(f"it has {num_words} words and {num_labels} labels")
    has_tree = loss == _HIERARCHICAL_SOFTMAX and word_ngrams == 1
    words = [word for word, _ in file.entries(_WORD, range(num_words)) if has_tree]
    labels = [*file.entries(_LABEL, range(num_words, size))]
    longest = 0 if version == _WITHOUT_NGRAMS else longest
    has_ngrams = word_ngrams > 1 or longest > 0
    if longest > _LONGEST_NGRAM or (has_ngrams and num_buckets < 1):
        raise ValueError(f"it has n-grams of {longest} characters in {num_buckets} buckets")
    kept = None if num_kept < 0 else _kept(file.array("<i4", num_kept, 2), num_buckets)
    num_ngrams = num_buckets if has_ngrams else 0
    if kept is not None:
        num_ngrams = int(kept[:, 1].max(initial=-1)) + 1
    coded = file.flag()
    rows = _table(file, coded=coded)
    nodes = _table(file, coded=file.flag() and coded)
    if (
        rows.shape[0] < num_words + num_ngrams
        or nodes.shape[0] < num_labels
        or {rows.shape[1], nodes.shape[1]} != {arguments[0]}
        or file.place != len(file.data)
    ):
        raise ValueError("its tables do not fit each other")
    return Model(
        shortest=shortest,
        longest=longest,
        num_buckets=num_buckets,
        has_tree=has_tree and END_OF_LINE in words,
        words=words,
        labels=[label.decode() for label, _ in labels],
        counts=[count for _, count in labels],
        kept=kept,
        input=rows,
        output=nodes,
    )


def _kept(pairs: npt.NDArray[np.int32], num_buckets: int) -> npt.NDArray[np.int32]:
    if pairs.size and (pairs.min() < 0 or pairs[:, 0].max() >= num_buckets):
        raise ValueError("it keeps a bucket that it does not have")
    return pairs


def _table(file: _Cursor, *, coded: bool) -> Table:
    if not coded:
        shape = file.numbers("qq")
        return Table(shape=shape, plain=file.array("<f4", *shape))
    with_norms = file.flag()
    num_rows, width, num_codes = file.numbers("qqi")
    codes = file.array("u1", num_codes)
    centroids = _centroids(file, width)
    if num_codes != num_rows * len(centroids):
        raise ValueError("its product codes do not fit its centroids")
    return Table(
        shape=(num_rows, width),
        codes=codes.reshape(num_rows, len(centroids)),
        centroids=centroids,
        norm_codes=file.array("u1", num_rows) if with_norms else None,
        norms=_centroids(file, 1)[0][:, 0] if with_norms else None,
    )


def _centroids(file: _Cursor, width: int) -> list[_Floats]:
    """Return for each piece of a row of this width its 256 centroids; the last can be shorter."""
    total, num_pieces, piece, last_piece = file.numbers("4i")
    fits = num_pieces > 0 and 0 < last_piece <= piece and total == width
    if not fits or (num_pieces - 1) * piece + last_piece != total:
        raise ValueError("its centroids do not fit its rows")
    widths = [piece] * (num_pieces - 1) + [last_piece]
    return [file.array("<f4", _CENTROIDS, width) for width in widths]


def tree(counts: Sequence[int]) -> npt.NDArray[np.int32]:
    """Return the children of each node of a Huffman tree, for counts that never rise; -1: none.

    Of `n` counts node `i < n` is the leaf of label i, node `n + i` has row i of the model's output,
    the last one is the root: shape (2n - 1, 2). The sigmoid of a node is the probability of its
    second child. Each new node takes the rarest two of the labels and nodes that have no parent;
    its first child is the rarer one. Of equal ones the node made earliest comes before the last
    label.
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
