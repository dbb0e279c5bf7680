"""Reads and checks files of fastText classifiers, and computes fastText's exact labels and scores.

    magic, version │ arguments │ words, labels, kept buckets │ input rows │ output rows

All numbers in a file are little-endian and packed. Rows are float32 numbers (.bin) or product codes
(.ftz): for each piece of a row one byte selects one of 256 centroids, and if norms are quantized
separately, one byte per row selects the norm.

    line ─▶ words ─▶ indices of the rows of words and n-grams ─▶ mean of the rows ─▶ best label

The sum of float32 numbers depends on the order of the additions, so rows are added in fastText's
order: word by word, the word's own row first, then the rows of its n-grams, sorted by beginning and
then by length. The kernels find the rows faster than fastText, because a bitmap shows that most
n-grams have no row.

Layout, tree and rules are those of fastText 0.9.2 (https://github.com/facebookresearch/fastText:
src/fasttext.cc, dictionary.cc, quantmatrix.cc, productquantizer.cc, loss.cc). Kernels read UTF-8 as
int8, because fastText hashes bytes as signed numbers; a byte below -64 continues a character.
"""
# ruff: noqa: PLR2004  bytes of UTF-8 and of codes

import hashlib
import importlib
import importlib.metadata
import math
import mmap
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel, kernel_inlined
from shards.errors import UserError

END_OF_LINE = b"</s>"
"""The word that represents a line break."""

LABEL_PREFIX = b"__label__"
"""The prefix of labels; unknown words with this prefix are ignored."""

_MAGIC, _LATEST = 793712314, 12
_WITHOUT_NGRAMS = 11
"""Classifiers of this version have no character n-grams, whatever their arguments say."""
_HIERARCHICAL_SOFTMAX, _SUPERVISED = 1, 3
_LOSSES = (1, 2, 3, 4)
_WORD, _LABEL = 0, 1
_ENDLESS = 10**15
"""The count of a node that does not exist yet; larger than all real counts."""
_MAX_WORD, _MAX_NGRAM = 1 << 16, 255
"""The maximum number of bytes of a word and of characters of an n-gram; more mean damage."""
_CHUNK = 1 << 22
_ENTRY = struct.Struct("<qb")

_MAX_WAITING = 1 << 12
"""How many rows may wait to be added when the search for the next character's n-grams begins."""
_PREFIX = np.frombuffer(LABEL_PREFIX, np.int8)
_OPEN, _CLOSE = ord("<"), ord(">")
_BASIS, _PRIME = np.uint64(2166136261), np.uint64(16777619)  # FNV-1a, of 32 bits
_SCATTER = np.uint64(0x9E3779B97F4A7C15)
_LOW, _BITS_63 = np.uint64(2**32 - 1), np.uint64(63)
_1, _6, _32 = np.uint64(1), np.uint64(6), np.uint64(32)
_MIN_SCORE = np.float32(math.log(1e-5))

_Floats = npt.NDArray[np.float32]


def load_library(path: Path, *, wanted: str) -> tuple[Any, "FastTextFile"]:
    """Return fastText's own C++ object for a classifier, and the content of its file.

    Args:
        path: The file.
        wanted: A description of the expected file, for errors.

    Raises:
        UserError: The file is missing, damaged or not a classifier; or fastText is missing.
    """
    try:
        fasttext: Any = importlib.import_module("fasttext")
    except ImportError as error:
        raise UserError(
            f"fastText cannot be imported ({error}): pip install fasttext-predict."
        ) from error
    try:
        file = read_file(path)
        # Use the bound C++ object, since some distributions' Python wrapper fails under NumPy 2.
        library = fasttext.load_model(str(path)).f
        library.predict("All is well.\n", 1, 0.0, "strict")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}; {wanted}") from error
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{path} is not a fastText classifier ({error}); {wanted}") from error
    return library, file


@lru_cache(maxsize=1)  # it searches all packages
def fasttext_version() -> str:
    """Return the distribution that provides the module `fasttext`, and its version."""
    owners = [
        distribution.name
        for distribution in importlib.metadata.distributions()
        if "fasttext" in (distribution.read_text("top_level.txt") or "").split()
    ]
    if not owners:  # the lists of all files name it too, but are fifty times as slow to read
        owners = importlib.metadata.packages_distributions().get("fasttext", ["fasttext"])
    versions = ((owner, importlib.metadata.version(owner)) for owner in sorted({*owners}))
    return " or ".join(f"{owner} {version}" for owner, version in versions)


def file_hash(path: Path, *, wanted: str = "expected the file of a model.") -> str:
    """Return the SHA-256 of a model's file, in hexadecimal.

    Raises:
        UserError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; {wanted}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTable:
    """A matrix whose rows are read from the file on demand."""

    shape: tuple[int, int]
    """The number of rows, and of the numbers in a row."""
    rows: Callable[[], _Floats]
    """Returns the rows, not multiplied by norms that are quantized separately."""
    norms: _Floats
    """float32[rows]; 1 unless norms are quantized separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FastTextFile:
    """The content of a classifier's file, whose tables have been checked against each other."""

    shortest: int
    """The number of characters of the shortest n-grams; each word is read between `<` and `>`."""
    longest: int
    """The number of characters of the longest n-grams; 0 if the model has no character n-grams."""
    num_buckets: int
    """The number of buckets; an n-gram's bucket is its hash modulo this number."""
    has_tree: bool
    """Whether the model has hierarchical softmax and no word n-grams, as lid.176 does.

    GlotLID and OpenLID have a flat softmax.
    """
    words: Sequence[bytes]
    """The words, including END_OF_LINE, in the order of their rows.

    Empty for a model with no tree: such models may have millions of words, which are not needed.
    """
    labels: Sequence[str]
    """The labels, most frequent first."""
    counts: Sequence[int]
    """How often each label occurred in training."""
    kept: npt.NDArray[np.int32] | None
    """Shape (kept, 2): buckets, and the index of each bucket's row among the rows of buckets.

    None if every bucket has a row, in the order of the buckets.
    """
    input: MatrixTable
    """The rows of words, then of buckets."""
    output: MatrixTable
    """The rows of labels, or of the inner nodes of the tree."""


def read_file(path: Path) -> FastTextFile:
    """Return the classifier in a file, which stays memory-mapped while its tables are in use.

    fastText itself trusts every number in a file: it allocates that much memory, and reads beyond
    tables that are too small. So it must only load files that this function accepts.

    Raises:
        ValueError: The file is not a classifier, or is damaged.
    """
    with path.open("rb") as file:
        cursor = _Cursor(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    try:
        return _read(cursor)
    except struct.error as error:
        raise ValueError(f"it ends early: {error}") from error


class _Cursor:
    """Reads the content of a file, one part after another."""

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
            raise ValueError("its tables are neither plain nor quantized")
        return bool(flag)

    def array(self, dtype: str, *shape: int) -> npt.NDArray[Any]:
        """Return an array of the file, not aligned, after checking that floats are finite."""
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
                raise ValueError("it has numbers that are not finite")
        self.place += size
        return array.reshape(shape)

    def entries(self, kind: int, numbers: range) -> Iterator[tuple[bytes, int]]:
        """Yield the words or labels with these indices, and how often each occurred."""
        for i in numbers:
            end = self.data.find(b"\0", self.place)
            if end < 0:
                raise struct.error(f"the word at {self.place} does not end")
            name = self.data[self.place : end]
            count, found = _ENTRY.unpack_from(self.data, end + 1)
            if found != kind or not 0 <= count < _ENDLESS or len(name) > _MAX_WORD:
                raise ValueError(f"its entry {i} is not a word or label, or out of order")
            self.place = end + 1 + _ENTRY.size
            yield name, count


def _read(file: _Cursor) -> FastTextFile:
    magic, version = file.numbers("ii")
    if magic != _MAGIC or not 0 < version <= _LATEST:
        raise ValueError("it does not begin like a fastText model")
    arguments = file.numbers("12id")
    word_ngrams, loss, kind, num_buckets, shortest, longest = arguments[5:11]
    if kind != _SUPERVISED or loss not in _LOSSES:
        raise ValueError("it has word vectors, not a classifier")
    size, num_words, num_labels, _, num_kept = file.numbers("iiiqq")
    if num_words < 0 or num_labels < 1 or size != num_words + num_labels:
        raise ValueError(f"it has {num_words} words and {num_labels} labels")
    has_tree = loss == _HIERARCHICAL_SOFTMAX and word_ngrams == 1
    words = [word for word, _ in file.entries(_WORD, range(num_words)) if has_tree]
    labels = [*file.entries(_LABEL, range(num_words, size))]
    longest = 0 if version == _WITHOUT_NGRAMS else longest
    has_ngrams = word_ngrams > 1 or longest > 0
    if longest > _MAX_NGRAM or (has_ngrams and num_buckets < 1):
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
    return FastTextFile(
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


def _table(file: _Cursor, *, coded: bool) -> MatrixTable:
    if not coded:
        shape = file.numbers("qq")
        numbers = file.array("<f4", *shape)
        norms = np.ones(shape[0], np.float32)
        return MatrixTable(shape=shape, rows=lambda: np.array(numbers), norms=norms)
    with_norms = file.flag()
    num_rows, width, num_codes = file.numbers("qqi")
    codes = file.array("u1", num_codes)
    centroids = _centroids(file, width)
    if num_codes != num_rows * len(centroids):
        raise ValueError("its product codes do not fit its centroids")
    codes = codes.reshape(num_rows, len(centroids))
    pieces = [*enumerate(centroids)]
    norms = np.ones(num_rows, np.float32)
    if with_norms:
        norm_codes = file.array("u1", num_rows)
        norms = _centroids(file, 1)[0][:, 0][norm_codes]
    return MatrixTable(
        shape=(num_rows, width),
        rows=lambda: np.concatenate([piece[codes[:, i]] for i, piece in pieces], axis=1),
        norms=norms,
    )


def _centroids(file: _Cursor, width: int) -> list[_Floats]:
    """Return the 256 centroids of each piece of a row; the last piece may be shorter."""
    total, num_pieces, piece, last_piece = file.numbers("4i")
    fits = num_pieces > 0 and 0 < last_piece <= piece and total == width
    if not fits or (num_pieces - 1) * piece + last_piece != total:
        raise ValueError("its centroids do not fit its rows")
    widths = [piece] * (num_pieces - 1) + [last_piece]
    return [file.array("<f4", 256, width) for width in widths]


class Lines(NamedTuple):
    """Strings of bytes, with a byte before and after each."""

    text: np.ndarray
    """int8[n], which kernels may write to."""
    starts: np.ndarray
    """int64[lines]: where each string begins."""
    stops: np.ndarray
    """int64[lines]: where each string ends."""


class FastTextTables(NamedTuple):
    """The tables of a model for the kernels."""

    slots: np.ndarray
    """int32[2 ** k], by hash: the index of a word or label in `names`; -1 for a free slot."""
    names: Lines
    """The words, then the labels."""
    num_words: int
    end_of_line: int
    """The index of END_OF_LINE."""
    shortest: int
    """The minimum number of characters of an n-gram."""
    longest: int
    num_buckets: int
    has_row: np.ndarray
    """uint64[num_buckets / 64 + 1], a bit per bucket, lowest first: whether the bucket has a row.

    Empty if all buckets have rows.
    """
    places: np.ndarray
    """int32[num_buckets]: the index of each bucket's row among the rows of buckets.

    Empty if all buckets have rows.
    """
    rows: np.ndarray
    """float32[rows, dimensions]"""
    nodes: np.ndarray
    """float32[inner nodes, dimensions]"""
    factors: np.ndarray
    """float32[inner nodes], the norms of the nodes' rows."""
    children: np.ndarray
    """int32[nodes, 2], see `tree`."""


class FastTextScratch(NamedTuple):
    """Memory for the intermediate values of one line."""

    waiting: np.ndarray
    """int64[n]: indices of words, and then of buckets, whose rows wait to be added."""
    counts: np.ndarray
    """int64[2]: how many rows wait, and how many were added."""
    mean: np.ndarray
    """float32[dimensions]: the sum of rows, then their mean."""
    open_nodes: np.ndarray
    """int64[labels · 2]: nodes of the tree that have not been visited yet."""
    open_scores: np.ndarray
    """float32[labels · 2]: the scores of these nodes."""


class FastTextClassifier:
    """Classifies lines with a model that has a tree; threads that share it take turns."""

    def __init__(self, file: FastTextFile) -> None:
        """Prepare the tables of a model that has a tree."""
        self._tables = _tables(file)
        num_nodes = len(self._tables.children)
        self._scratch = FastTextScratch(
            waiting=np.empty(_MAX_WAITING + self._tables.longest + 2, np.int64),
            counts=np.empty(2, np.int64),
            mean=np.empty(self._tables.rows.shape[1], np.float32),
            open_nodes=np.empty(num_nodes + 1, np.int64),
            open_scores=np.empty(num_nodes + 1, np.float32),
        )
        self._lock = threading.Lock()
        fill_slots(self._tables)
        self.classify([b"-"])

    def classify(self, lines: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], _Floats]:
        """Return the index of the most likely label of each line, and its probability.

        Args:
            lines: UTF-8. Line breaks separate words, like other white space. An empty line gets -1
                and 0.
        """
        labels, scores = np.empty(len(lines), np.int64), np.empty(len(lines), np.float32)
        with self._lock:
            classify(self._tables, self._scratch, _joined(lines), labels, scores)
        return labels, scores


def _tables(file: FastTextFile) -> FastTextTables:
    names = [*file.words, *(label.encode() for label in file.labels)]
    longest = max(file.longest, 0)
    has_row, places = np.zeros(0, np.uint64), np.zeros(0, np.int32)
    if file.kept is not None:
        places = np.full(file.num_buckets, -1, np.int32)
        places[file.kept[:, 0]] = file.kept[:, 1]
        bits = np.zeros((file.num_buckets // 64 + 1) * 64, np.bool_)
        bits[file.kept[:, 0]] = True
        has_row = np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)
        longest = longest if len(file.kept) else 0
    # fastText multiplies a row by its norm before it adds the row to others.
    rows = file.input.rows() * file.input.norms[:, np.newaxis]
    return FastTextTables(
        slots=np.full(1 << (2 * len(names)).bit_length(), -1, np.int32),
        names=_joined(names),
        num_words=len(file.words),
        end_of_line=file.words.index(END_OF_LINE),
        shortest=max(file.shortest, 1),
        longest=longest,
        num_buckets=max(file.num_buckets, 1),
        has_row=has_row,
        places=places,
        rows=rows,
        nodes=file.output.rows(),
        factors=file.output.norms,
        children=tree(file.counts),
    )


def _joined(lines: Sequence[bytes]) -> Lines:
    text = bytearray(b"\n").join([b"", *lines, b""])
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    stops = np.cumsum(lengths + 1)
    return Lines(np.frombuffer(text, np.int8), stops - lengths, stops)


def tree(counts: Sequence[int]) -> npt.NDArray[np.int32]:
    """Return the children of each node of a Huffman tree, for descending counts; -1 for leaves.

    With `n` counts, node `i < n` is the leaf of label i, node `n + i` has row i of the model's
    output, and the last node is the root: shape (2n - 1, 2). The sigmoid of a node is the
    probability of its second child. The children of each new node are the two rarest labels or
    nodes without a parent; the first child is the rarer one. If several are equally rare, the
    earliest node comes before the last label.
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


@kernel_inlined
def is_space(byte: int) -> bool:
    """Return whether a byte separates words."""
    return 0 <= byte <= 32 and (byte == 32 or 9 <= byte <= 13 or byte == 0)


@kernel_inlined
def find_word(
    tables: FastTextTables, text: np.ndarray, begin: int, end: int, key: np.uint64
) -> tuple[np.uint64, int]:
    """Return the slot of a word with this hash, and the word's index, or -1 for an unknown word."""
    (known, starts, stops), slots = tables.names, tables.slots
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


@kernel
def fill_slots(tables: FastTextTables) -> None:
    """Fill the slots; if words are equal, the first one counts."""
    text, starts, stops = tables.names
    for word in range(len(starts)):
        key = _BASIS
        for at in range(starts[word], stops[word]):
            key = (key ^ np.uint64(text[at])) * _PRIME
        slot, same = find_word(tables, text, starts[word], stops[word], key)
        if same < 0:
            tables.slots[slot] = word


@kernel_inlined
def is_label(text: np.ndarray, begin: int, end: int) -> bool:
    """Return whether an unknown word looks like a label, and is therefore ignored."""
    at = 0
    while at < len(_PREFIX) and begin + at < end and text[begin + at] == _PREFIX[at]:
        at += 1
    return at == len(_PREFIX)


@kernel
def add_waiting(tables: FastTextTables, scratch: FastTextScratch) -> None:
    """Add the waiting rows, in order."""
    total, waiting, count = scratch.mean, scratch.waiting, scratch.counts[0]
    for i in range(count):
        row = waiting[i]
        if row >= tables.num_words and tables.places.size:
            row = tables.num_words + tables.places[row - tables.num_words]
        for j in range(total.size):
            total[j] += tables.rows[row, j]
    scratch.counts[0], scratch.counts[1] = 0, scratch.counts[1] + count


@kernel_inlined
def find_ngrams(
    tables: FastTextTables,
    scratch: FastTextScratch,
    text: np.ndarray,
    begin: int,
    end: int,
    first: int,
) -> None:
    """Append the rows of a word's n-grams that begin at a place to the waiting rows.

    The word is between two marks, at `begin` and before `end`; a mark alone is not an n-gram.
    """
    waiting, has_row, count = scratch.waiting, tables.has_row, scratch.counts[0]
    buckets = np.uint64(tables.num_buckets)
    inverse = (_1 << _32) // buckets
    key, length, at = _BASIS, 0, first
    while True:
        if at == end or text[at] >= -64:  # the next character: an n-gram is complete
            if length >= tables.shortest and (length > 1 or (first != begin and at != end)):
                # The remainder, computed by a multiplication; it may be too large by the divisor.
                low = key & _LOW
                rest = low - ((low * inverse) >> _32) * buckets
                bucket = rest - buckets if rest >= buckets else rest
                # No branch, because it would be mispredicted too often.
                waiting[count] = tables.num_words + np.int64(bucket)
                found = _1
                if has_row.size:
                    found = (has_row[bucket >> _6] >> (bucket & _BITS_63)) & _1
                count = int(count + np.int64(found))
            if length == tables.longest or at == end:
                scratch.counts[0] = count
                return
            length += 1
        key = (key ^ np.uint64(text[at])) * _PRIME
        at += 1


@kernel_inlined
def add_ngrams(
    tables: FastTextTables, scratch: FastTextScratch, text: np.ndarray, begin: int, end: int
) -> None:
    """Append the rows of a word's n-grams to the waiting rows, adding these when too many wait."""
    before, after = text[begin - 1], text[end]
    text[begin - 1], text[end] = _OPEN, _CLOSE
    for first in range(begin - 1, end + 1):
        if text[first] >= -64:
            if scratch.counts[0] > _MAX_WAITING:
                add_waiting(tables, scratch)
            find_ngrams(tables, scratch, text, begin - 1, end + 1, first)
    text[begin - 1], text[end] = before, after


@kernel_inlined
def read_word(
    tables: FastTextTables, text: np.ndarray, start: int, stop: int
) -> tuple[int, int, int]:
    """Return where the next word begins and ends, and its index; -1 if it is not known.

    After the last word comes the end of the line. Unknown labels have the index of the first label.
    """
    begin = start
    while begin < stop and is_space(text[begin]):
        begin += 1
    at, key = begin, _BASIS
    while at < stop and not is_space(text[at]):
        key = (key ^ np.uint64(text[at])) * _PRIME
        at += 1
    if begin == stop:
        return begin, at, tables.end_of_line
    word = find_word(tables, text, begin, at, key)[1]
    return begin, at, tables.num_words if word < 0 and is_label(text, begin, at) else word


@kernel
def average_rows(
    tables: FastTextTables, scratch: FastTextScratch, text: np.ndarray, start: int, stop: int
) -> None:
    """Write the mean of the rows of a line's words and of the line's end.

    A word that equals the end of a line ends the line.
    """
    counts, mean = scratch.counts, scratch.mean
    mean[:] = np.float32(0.0)
    counts[:] = 0
    word, end = -1, start
    while word != tables.end_of_line:
        begin, end, word = read_word(tables, text, end, stop)
        if counts[0] > _MAX_WAITING:
            add_waiting(tables, scratch)
        scratch.waiting[counts[0]] = word
        counts[0] += 0 <= word < tables.num_words
        if word < tables.num_words and word != tables.end_of_line and tables.longest > 0:
            add_ngrams(tables, scratch, text, begin, end)
    add_waiting(tables, scratch)
    share = np.float32(1.0 / np.float64(counts[1]))
    for i in range(mean.size):
        mean[i] *= share


@kernel
def find_likeliest(tables: FastTextTables, scratch: FastTextScratch) -> tuple[int, np.float32]:
    """Return the leaf with the highest product of probabilities on its path, and the product.

    Nodes are visited in fastText's order; if rounded scores are equal, the last one counts. Types
    are float32 where C++ has floats, and float64 where it has doubles.
    """
    children, nodes, mean = tables.children, tables.nodes, scratch.mean
    open_nodes, open_scores = scratch.open_nodes, scratch.open_scores
    num_labels = (len(children) + 1) // 2
    best, best_score = -1, np.float32(-np.inf)
    open_nodes[0], open_scores[0] = len(children) - 1, np.float32(0.0)
    num_open = 1
    while num_open:
        num_open -= 1
        node, score = open_nodes[num_open], open_scores[num_open]
        if score < _MIN_SCORE or score < best_score:
            continue
        if children[node, 0] < 0:
            best, best_score = node, score
            continue
        row = node - num_labels
        product = np.float32(0.0)
        for i in range(mean.size):
            product += nodes[row, i] * mean[i]
        product *= tables.factors[row]
        second = np.float32(1.0 / np.float64(np.float32(1.0) + np.float32(math.exp(-product))))
        first = np.float32(1.0 - np.float64(second))
        open_nodes[num_open] = children[node, 1]
        open_scores[num_open] = score + np.float32(math.log(np.float64(second) + 1e-5))
        open_nodes[num_open + 1] = children[node, 0]
        open_scores[num_open + 1] = score + np.float32(math.log(np.float64(first) + 1e-5))
        num_open += 2
    return best, np.float32(math.exp(best_score))


@kernel
def classify(
    tables: FastTextTables,
    scratch: FastTextScratch,
    lines: Lines,
    labels: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Write the most likely label of each line, and its probability; -1 and 0 for empty lines.

    Args:
        tables: The tables of the model.
        scratch: Memory.
        lines: The lines.
        labels: Output, int64[n].
        scores: Output, float32[n].
    """
    text, starts, stops = lines
    for line in range(len(stops)):
        labels[line], scores[line] = -1, np.float32(0.0)
        if starts[line] < stops[line]:
            average_rows(tables, scratch, text, starts[line], stops[line])
            labels[line], scores[line] = find_likeliest(tables, scratch)
