"""Kernels that find Chinese words as jieba 0.42.1 does in its accurate mode.

A text consists of blocks of Han, Latin letters, digits and the signs +#&._%-, and of characters
between the blocks, each of which is a word or white space. A block is cut into the most likely
sequence of dictionary words, which is computed from its end to its start. If that leaves several
adjacent single characters, Latin and digits are cut by a pattern, and Han by a hidden Markov model
of the roles that characters have in words. The steps are those of jieba's `__init__.py` and
`finalseg/__init__.py`: all sums are computed in jieba's order, and ties are broken as Python's
max() breaks them for jieba's tuples.

jieba takes most of a second to read its dictionary into 60 MB, and then splits 1 MB/s. The kernels
start in a fifth of that time and split 40 MB/s. They read jieba's own files; if these are not the
files of the version that the kernels follow, jieba itself is used.
"""

import hashlib
import importlib
import importlib.metadata
import logging
import math
import string
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.characters import code_points
from pipelines.quality.spans import Spans, words_as_spans

OTHER, SPACE, FIRST_HAN = 0, 1, 128
"""Letters are the numbers of characters in blocks; those of ASCII are code points.

The letters of Han begin with FIRST_HAN. The first two letters are for characters outside of blocks.
"""

LETTERS = 1 << 15
"""An upper limit for the numbers of letters."""

SLOTS = LETTERS + (1 << 20)
"""The maximum number of nodes of a dictionary; jieba's has 0.48 million of two or more letters."""

BEGIN, END, MIDDLE, SINGLE = range(4)
"""The roles of a character in a word, in the order of their names in jieba, which breaks ties."""

_BEFORE = ((END, SINGLE), (BEGIN, MIDDLE), (BEGIN, MIDDLE), (END, SINGLE))
"""For each role of a character, the two possible roles of the character before it."""

_Places: TypeAlias = npt.NDArray[np.int64]
# Any, because mypy does not accept numpy's numbers as Python's.
_Codes: TypeAlias = npt.NDArray[Any]  # uint32
_Letters: TypeAlias = npt.NDArray[Any]  # uint16
_Nodes: TypeAlias = npt.NDArray[np.uint64]
_Floats: TypeAlias = npt.NDArray[np.float64]
_Flags: TypeAlias = npt.NDArray[Any]  # uint8

_LINE_END, _WORD_END = ord("\n"), ord(" ")
_POINT, _PERCENT = ord("."), ord("%")
_ZERO, _NINE = ord("0"), ord("9")
_A, _Z, _TO_SMALL = ord("a"), ord("z"), 0x20
_KEY_BITS, _HASH_SHIFT = np.uint64(16), np.uint64(64 - 20)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 by the golden ratio
_HASH_MASK = (1 << 20) - 1

# If a variable begins with a literal, numba compiles the kernels that it is passed to twice.
_FIRST: Any = np.int64(0)
_ROOT: Any = np.int64(0)


class JiebaTables(NamedTuple):
    """jieba's dictionary and model."""

    letters: _Letters
    """uint16[0x10000]: the letter of each code point; higher code points are OTHER."""
    nodes: _Nodes
    """uint64[SLOTS]: the keys of the dictionary's nodes, 0 for a free slot; see _child."""
    scores: _Floats
    """float64[SLOTS]: the log probability of the word that ends at a node; NaN if none ends."""
    unknown: float
    """The log probability of a character that begins no word."""
    starts: _Floats
    """float64[4]: the log probability of each role at the start of a stretch of Han."""
    steps: _Floats
    """float64[4, 4]: the log probability that the second role follows the first."""
    shown: _Floats
    """float64[LETTERS, 4]: the log probability of each letter in each role."""


_LOG = logging.getLogger(__name__)

_VERSION = "0.42.1"
_DICTIONARY = "7197c3211ddd98962b036cdf40324d1ea2bfaa12bd028e68faa70111a88e12a8"
"""The SHA-256 of jieba's dict.txt."""

_IN_BLOCKS = string.ascii_letters + string.digits + "+#&._%-"
_HAN = range(0x4E00, 0x9FD5 + 1)
"""The code points of the Han that jieba knows."""

_ROLES = {"B": BEGIN, "E": END, "M": MIDDLE, "S": SINGLE}
_NEVER = -3.14e100
"""jieba's log probability for entries that its model lacks."""


class JiebaWords:
    """Finds the words of Chinese texts."""

    def words(self, texts: Spans) -> Spans:
        """Return the words of texts, stripped of white space; empty words are left out."""
        if self._tables is None:
            return words_as_spans(map(self._words_of, texts.strings()))
        codes = texts.characters.codes
        letters, last = np.empty(len(codes), np.uint16), np.zeros(len(codes), np.uint8)
        best, after = np.empty(len(codes) + 1), np.empty(len(codes), np.int64)
        _mark_words(codes, self._tables, letters, best, after, last)
        starts, ends = np.empty((2, np.count_nonzero(last)), np.int64)
        offsets = np.zeros(len(texts.starts) + 1, np.int64)
        _find_words(letters, last, texts.starts, texts.ends, starts, ends, offsets)
        return Spans(texts.characters, starts[: offsets[-1]], ends[: offsets[-1]], offsets)

    def _words_of(self, text: str) -> list[str]:
        return [word for word in map(str.strip, self._tokenizer.cut(text)) if word]

    @cached_property
    def _library(self) -> Any:
        with _quiet_import():
            jieba = importlib.import_module("jieba")
        jieba.setLogLevel(logging.WARNING)
        return jieba

    @cached_property
    def _tokenizer(self) -> Any:
        """Jieba's tokenizer with its own dictionary."""
        tokenizer = self._library.Tokenizer()
        # jieba's loader would trust any cache file in the shared temporary folder.
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
        tokenizer.initialized = True
        return tokenizer

    @cached_property
    def _tables(self) -> "JiebaTables | None":
        """The tables of the kernels; None, after a warning, if jieba has different rules."""
        version = importlib.metadata.version("jieba")
        with self._library.Tokenizer().get_dict_file() as file:
            lines = file.read()
        if version == _VERSION and hashlib.sha256(lines).hexdigest() == _DICTIONARY:
            return _tables_of(self._library, lines)
        found = "another dictionary" if version == _VERSION else version
        _LOG.warning(
            "jieba itself finds Chinese words, which is slower: the kernels follow jieba %s with "
            "its own dictionary, and %s is installed.",
            _VERSION,
            found,
        )
        return None


@contextmanager
def _quiet_import() -> Iterator[None]:
    # jieba 0.42.1 has invalid escapes and imports pkg_resources, which causes warnings.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _tables_of(library: Any, lines: bytes) -> "JiebaTables":
    """Return the tables of the dictionary and the model, which take 18 MB."""
    letters = np.zeros(1 << 16, np.uint16)
    letters[[code for code in range(len(letters)) if chr(code).isspace()]] = SPACE
    letters[code_points(_IN_BLOCKS)] = code_points(_IN_BLOCKS)
    letters[_HAN] = np.arange(FIRST_HAN, FIRST_HAN + len(_HAN))
    nodes, scores, unknown = _dictionary(lines, letters)
    model = library.finalseg
    starts = np.empty(4)
    steps = np.full((4, 4), _NEVER)
    shown = np.full((LETTERS, 4), _NEVER)
    for name, role in _ROLES.items():
        starts[role] = model.start_P[name]
        for following, chance in model.trans_P[name].items():
            steps[role, _ROLES[following]] = chance
        chances = model.emit_P[name]
        shown[letters[code_points("".join(chances))], role] = list(chances.values())
    return JiebaTables(letters, nodes, scores, unknown, starts, steps, shown)


def _dictionary(
    lines: bytes, letters: npt.NDArray[np.uint16]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64], float]:
    """Return the dictionary's nodes, their scores, and the score of characters outside of words."""
    nodes = np.zeros(SLOTS, np.uint64)
    found = np.empty(lines.count(b"\n"), np.int64)
    counts = np.empty_like(found)
    _read_dictionary(code_points(lines.decode()), letters, nodes, found, counts)
    total = math.log(int(counts.sum()))
    scores = np.full(SLOTS, np.nan)
    # Computed as in jieba, because numpy's logarithm may differ in the last bit.
    scores[found] = np.array([math.log(count) for count in counts.tolist()]) - total
    return nodes, scores, -total


@kernel
def _read_dictionary(
    codes: _Codes, letters: _Letters, nodes: _Nodes, found: _Places, counts: _Places
) -> None:
    r"""Put the words of a dictionary into a table of nodes.

    Args:
        codes: Lines, each with a word, a space, the word's count, other data and \n.
        letters: The letters of code points, as in JiebaTables.
        nodes: Output: the table, which the caller fills with zeros.
        found: Output, int64[lines]: the node of each word; 0 if the word cannot be in a block.
        counts: Output, int64[lines]: the count of each word.
    """
    place = 0
    for line in range(len(found)):
        node, inside = _ROOT, True
        while codes[place] != _WORD_END:
            letter = letters[codes[place]] if codes[place] < len(letters) else OTHER
            inside = inside and letter > SPACE
            if inside:
                child = _child(nodes, node, letter)
                nodes[child] = _key(node, letter)
                node = child
            place += 1
        place += 1
        count = 0
        while _ZERO <= codes[place] <= _NINE:
            count = 10 * count + codes[place] - _ZERO
            place += 1
        while codes[place] != _LINE_END:
            place += 1
        place += 1
        found[line] = node if inside else 0
        counts[line] = count


@kernel
def _mark_words(
    codes: _Codes, tables: JiebaTables, text: _Letters, best: _Floats, after: _Places, last: _Flags
) -> None:
    """Mark the last characters of words.

    Args:
        codes: Code points of texts, with white space between them.
        tables: The dictionary and the model.
        text: Output: the letters of the code points.
        best: Memory for _choose(), with one element more than the text.
        after: Memory for _choose().
        last: Output: 1 where a word ends; the caller fills it with zeros.
    """
    letters = tables.letters
    for place in range(len(codes)):
        code = codes[place]
        text[place] = letters[code] if code < len(letters) else OTHER
    _choose(text, tables, best, after)
    _mark(text, after, tables, last)


@kernel
def _find_words(  # noqa: PLR0913, PLR0917  texts, and where to write
    text: _Letters,
    last: _Flags,
    begins: _Places,
    stops: _Places,
    starts: _Places,
    ends: _Places,
    offsets: _Places,
) -> None:
    """Write where the words of texts begin and end, without white space.

    Args:
        text: The letters.
        last: Which letters end words.
        begins: Where each text begins.
        stops: Where each text ends.
        starts: Output: where words begin.
        ends: Output: where words end.
        offsets: Output: where the words of each text after the first begin.
    """
    word = 0
    for index in range(len(begins)):
        begin = begins[index]
        for place in range(begins[index], stops[index]):
            if last[place]:
                starts[word], ends[word] = begin, place + 1
                word += 1
            if last[place] or text[place] == SPACE:
                begin = place + 1
        offsets[index + 1] = word


@kernel
def _key(node: int, letter: int) -> np.uint64:
    return np.uint64(node) << _KEY_BITS | np.uint64(letter)


@kernel
def _child(nodes: _Nodes, node: int, letter: int) -> Any:
    """Return the slot of the node that a letter leads to; the slot is 0 if there is no such node.

    A node is identified by its slot. The root is _ROOT, and the slots of its children are the
    letters; other nodes are found by a hash of their key, which combines parent and letter.
    """
    if node == _ROOT:
        return np.int64(letter)
    key = _key(node, letter)
    slot = np.int64(key * _SPREAD >> _HASH_SHIFT)
    while nodes[LETTERS + slot] != key and nodes[LETTERS + slot] != 0:
        slot = (slot + 1) & _HASH_MASK
    return LETTERS + slot


@kernel
def _choose(text: _Letters, tables: JiebaTables, best: _Floats, after: _Places) -> None:
    """Find the most likely words from each place of a text to the end of its block.

    Characters outside of blocks lead to no node, and count as words of one character.

    Args:
        text: The letters of the text.
        tables: The dictionary.
        best: Output: the scores of these words; one element more than the text has.
        after: Output: where the first of these words ends.
    """
    # Reading the tuple only once makes the loop faster.
    nodes, scores, unknown = tables.nodes, tables.scores, tables.unknown
    best[len(text)] = 0.0
    for place in range(len(text) - 1, -1, -1):
        top, choice = -np.inf, 0
        node, end = _ROOT, place
        while end < len(text):
            node = _child(nodes, node, text[end])
            if nodes[node] == 0:
                break
            end += 1
            score = scores[node] + best[end]  # NaN where no word ends
            if score >= top:
                top, choice = score, end
        if choice == 0:
            top, choice = unknown + best[place + 1], place + 1
        best[place] = top if text[place] > SPACE else 0.0
        after[place] = choice


@kernel
def _mark(text: _Letters, after: _Places, tables: JiebaTables, last: _Flags) -> None:
    """Mark the last letters of the words of a text.

    Args:
        text: The letters of the text.
        after: The result of _choose().
        tables: The dictionary and the model.
        last: Output: 1 where a word ends; the caller fills it with zeros.
    """
    nodes, scores = tables.nodes, tables.scores
    place = _FIRST
    while place < len(text):
        begin = place
        while place < len(text) and text[place] > SPACE and after[place] == place + 1:
            place += 1
        if place - begin > 1 and not _is_word(text, begin, place, nodes, scores):
            _mark_singles(text, begin, place, tables, last)
        else:
            for single in range(begin, place):
                last[single] = 1
        if place < len(text):
            place = after[place]
            last[place - 1] = text[place - 1] != SPACE


@kernel
def _is_word(text: _Letters, begin: int, stop: int, nodes: _Nodes, scores: _Floats) -> bool:
    node = _ROOT
    for place in range(begin, stop):
        node = _child(nodes, node, text[place])
        if nodes[node] == 0:
            return False
    return not np.isnan(scores[node])


@kernel
def _mark_singles(text: _Letters, place: int, stop: int, tables: JiebaTables, last: _Flags) -> None:
    """Mark the last letters of words in a stretch of letters that has no dictionary words.

    The model splits Han; in the rest [a-zA-Z0-9]+([.][0-9]+)?%? is a word, and so is any text
    between two such words.
    """
    while place < stop:
        begin = place
        place += 1
        if text[begin] >= FIRST_HAN:
            while place < stop and text[place] >= FIRST_HAN:
                place += 1
            _mark_han(text, begin, place, tables, last)
        elif _is_alphanumeric(text[begin]):
            place = _number_end(text, place, stop)
        else:
            while place < stop and text[place] < FIRST_HAN and not _is_alphanumeric(text[place]):
                place += 1
        last[place - 1] = 1


@kernel
def _number_end(text: _Letters, place: int, stop: int) -> int:
    """Return where [a-zA-Z0-9]+([.][0-9]+)?%? ends, given a place after its first character."""
    while place < stop and _is_alphanumeric(text[place]):
        place += 1
    if place + 1 < stop and text[place] == _POINT and _is_digit(text[place + 1]):
        place += 2
        while place < stop and _is_digit(text[place]):
            place += 1
    if place < stop and text[place] == _PERCENT:
        place += 1
    return place


@kernel
def _is_digit(letter: int) -> bool:
    return _ZERO <= letter <= _NINE


@kernel
def _is_alphanumeric(letter: int) -> bool:
    return _is_digit(letter) or _A <= letter | _TO_SMALL <= _Z


@kernel
def _mark_han(text: _Letters, begin: int, stop: int, tables: JiebaTables, last: _Flags) -> None:
    """Mark the last letters of words in a stretch of Han, by Viterbi's algorithm."""
    letter = text[begin]
    chances = (
        tables.starts[BEGIN] + tables.shown[letter, BEGIN],
        tables.starts[END] + tables.shown[letter, END],
        tables.starts[MIDDLE] + tables.shown[letter, MIDDLE],
        tables.starts[SINGLE] + tables.shown[letter, SINGLE],
    )
    for place in range(begin + 1, stop):
        letter = text[place]
        begins, begins_second = _best(chances, tables, letter, BEGIN)
        ends, ends_second = _best(chances, tables, letter, END)
        continues, continues_second = _best(chances, tables, letter, MIDDLE)
        is_single, single_second = _best(chances, tables, letter, SINGLE)
        chances = (begins, ends, continues, is_single)
        # The loop below replaces these bits when it comes back here.
        last[place] = (
            begins_second << BEGIN
            | ends_second << END
            | continues_second << MIDDLE
            | single_second << SINGLE
        )
    role = SINGLE if chances[SINGLE] >= chances[END] else END
    for place in range(stop - 1, begin, -1):
        before = _BEFORE[role][last[place] >> role & 1]
        last[place] = role in (END, SINGLE)
        role = before
    last[begin] = role in (END, SINGLE)


@kernel
def _best(
    chances: tuple[float, float, float, float], tables: JiebaTables, letter: int, role: int
) -> tuple[float, Any]:
    """Return the best chance of a letter in a role, and whether _BEFORE's second role gives it."""
    first, second = _BEFORE[role]
    one = chances[first] + tables.steps[first, role] + tables.shown[letter, role]
    other = chances[second] + tables.steps[second, role] + tables.shown[letter, role]
    return max(one, other), np.int64(other >= one)
