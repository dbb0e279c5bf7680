"""Finds English words and sentences by spaCy's rules, in kernels.

spaCy's tokenizer cuts a text at its white space into chunks, splits each chunk by its rules, and
then looks for special cases among all tokens of the text:

    text      (Thanks:) Don't mention  it.
    chunks    (Thanks:)     Don't    mention   it.
    split     ( Thanks : )  Do n't   mention   it .         a special case is a whole chunk, or
    merged    ( Thanks :)   Do n't   mention   it .         a chunk without its affixes

The kernels implement the rules for ASCII chunks. spaCy itself finds the tokens of all other chunks,
of those that may be internet addresses, and of *loose* ones, many at once; its results are kept in
a table, together with its special cases. Every token is a range of the text, because spaCy's tokens
cover the whole text.

In the last step a PhraseMatcher finds every sequence of tokens that the affix rules alone make of a
special case (the *phrases*; `:` `)` is one), with or without spaces between the tokens. Among
overlapping matches spaCy chooses the longest, and replaces it by the special case if the match's
text is one. So the tokens of a chunk depend on other chunks only if

1. a match that crosses its border is replaced. This never happens: the text of such a match
   contains white space, and the only special cases with white space are single characters of it;
2. a match inside the chunk is replaced, or would be if no match that crosses its border prevented
   it (the longer match wins, even if its text then turns out to be no special case).

A chunk with a match of the second kind is loose. A match that crosses a border contains the tokens
on both sides of the border: chunks are *linked* if a single space separates them and some phrase
has two adjacent tokens that end and begin with the same characters. Chunks that are linked to a
loose one, directly or through others, are read as one chunk. All remaining chunks have the same
tokens as they would have alone. White space makes tokens too, but these are not words, and no
phrase of several tokens contains them.

Sentences follow from the tokens: for spaCy's sentencizer a sentence begins with the first token
after an end mark that is neither an end mark nor other punctuation.
"""
# ruff: noqa: PLR1714, SIM109  numba compiles sets of characters slowly

import hashlib
import importlib
import importlib.metadata
import itertools
import logging
import re
import string
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.characters import (
    NUM_CODE_POINTS,
    SPACE,
    Kinds,
    code_points,
    kinds_of_characters,
)
from pipelines.quality.spans import (
    Codes,
    Places,
    Spans,
    cumsum_from_zero,
    hash_of,
    texts_as_spans,
    words_as_spans,
)

_LOG = logging.getLogger(__name__)

_RULES = "a6e188d511aa8172f7b4249aba529547287bfba6986589b7fe584dab59b3e8c2"
"""The SHA-256 of the rules that the kernels implement, which are those of spaCy 3.8."""

# spaCy takes this word for one of spaCy's own symbols, and fails with an assertion on its second
# occurrence; datatrove 0.10.1 (utils/word_tokenizers.py) then removes the word.
_UNREADABLE = "IS_ALPHA"

# spaCy's rules about affixes, for ASCII.
_QUOTES = frozenset("\"'`,")
"""Quotation marks, which include the comma for spaCy."""
_MARKS = _QUOTES | frozenset(";:!?()[]{}<>_#*&")
"""Characters that are suffixes alone, and do not end longer suffixes."""
_PREFIXES = _MARKS | frozenset("%=$")
"""Characters that are prefixes alone, and do not begin longer prefixes."""
_DOTTED = _MARKS | frozenset("%-+|" + string.digits + string.ascii_lowercase)
"""Characters after which one full stop is a suffix; after others it takes two or more."""
_UNITS = (  # noqa: SIM905  more readable
    "km m dm cm mm ha nm yd in ft kg g mg t lb oz m/s km/h kmh mph hPa Pa mbar mb MB kb KB gb GB "
    "tb TB T G M K %"
).split()
"""The units that are suffixes after a digit."""
_UNIT_CODES = max(map(len, _UNITS))

_Classes: TypeAlias = npt.NDArray[Any]  # uint16
"""The class of each character, uint16[NUM_CODE_POINTS]."""
_UPPER, _LOWER, _DIGIT, _QUOTE, _PREFIX, _MARK, _DOTS, _PUNCTUATION = (1 << i for i in range(8))
_PLAIN, _FOREIGN, _WHITE, _SIGN, _JOINER = (1 << i for i in range(8, 13))
"""_PLAIN is set for ASCII characters of no other class, _FOREIGN for characters outside ASCII."""
_LETTER = _UPPER | _LOWER
_NO_LETTER = 0xFFFF - _LETTER
_NUM_ASCII = 128

_DOT, _PLUS, _MINUS, _DOLLAR, _COLON, _SLASH = map(ord, ".+-$:/")
_QUESTION, _BANG, _HASH, _AT, _UNDERSCORE, _COMMA = map(ord, "?!#@_,")
_APOSTROPHE, _BLANK, _A, _C, _U, _S, _SMALL_S = map(ord, "' ACUSs")

_Borders: TypeAlias = npt.NDArray[Any]  # uint8
"""Which pairs of characters may be next to a border of tokens, by number; see _ChunkTables."""
_REPLACED, _LINKED = 1, 2
"""Bits of _Borders: pairs at the beginning of replaced phrases; all pairs in phrases."""

_KEY, _CODES, _LENGTH, _COUNT, _FLAGS = range(5)
"""The columns of a hash table with open addressing, int64[a power of 2, 8]: the hash of a chunk;
where its code points begin in an array, followed by a number per token; the number of code points;
the number of tokens; and flags."""
_NUM_COLUMNS = 8  # a cache line of the CPU
_USED, _SPECIAL, _PAIR, _UNIT, _LOOSE = (1 << i for i in range(5))
"""Flags: a row in use; a special case; the joined first two tokens of a replaced phrase; a unit;
and a chunk whose tokens depend on other chunks."""
_MAX_FLAGGED = 16
"""The maximum number of code points of special cases, pairs and units in ASCII."""
_MAX_CHUNKS, _MAX_CODES = 1 << 18, 1 << 23
"""The maximum number of remembered chunks, and of their code points, in 100 MB or less."""

_WORD, _END, _OTHER, _UNSPLIT = range(4)
"""Kinds of tokens: a token that is not only punctuation, an end mark, other punctuation, and a
chunk that spaCy has to split."""
_AFTER_SPACE = 4
"""Bit of a token's kind: a space precedes the token."""
_KIND_BITS = 3
_KINDS = (1 << _KIND_BITS) - 1
_UNKNOWN = -1
# If a variable begins with a literal, numba compiles the kernels that it is passed to twice.
_NOWHERE: Any = np.int64(-2)
_NO, _YES, _MAYBE = 0, 1, 2


class SpacyWords:
    """Finds the words and sentences of English texts."""

    def words(self, texts: Spans) -> Spans:
        """Return the words of texts, stripped of white space; empty words are left out."""
        words, _ = self._tokens(_readable(texts))
        return words

    def num_sentences(self, lines: Sequence[str]) -> Places:
        """Return the number of sentences in each line."""
        if self._known is None:
            return np.array([*map(self._library.num_sentences, lines)], np.int64)
        texts = _readable(texts_as_spans(lines))
        return _num_sentences(texts, *self._tokens(texts))

    def _tokens(self, texts: Spans) -> tuple[Spans, Kinds]:
        """Return the words of texts and the kinds of the words."""
        if self._known is None:
            words = words_as_spans(map(self._library.words, texts.strings()))
            return words, np.zeros(0, np.uint8)
        self._known.make_room()
        codes = texts.characters.codes
        scratch = np.empty((2, max(texts.lengths, default=0)), np.int64)
        (starts, ends), kinds = np.empty((2, len(codes)), np.int64), np.empty(len(codes), np.uint8)
        offsets = np.zeros(len(texts.starts) + 1, np.int64)
        where = codes, texts.starts, texts.ends
        _split_texts(*where, self._known.rules, scratch, starts, ends, kinds, offsets)
        words = Spans(texts.characters, starts[: offsets[-1]], ends[: offsets[-1]], offsets)
        return _with_tokens(words, kinds[: offsets[-1]], self._known)

    @cached_property
    def _library(self) -> "_Spacy":
        return _Spacy()

    @cached_property
    def _known(self) -> "_ChunkTables | None":
        """The tables of the kernels; None, after a warning, if spaCy has different rules."""
        if self._library.fingerprint == _RULES:
            return _ChunkTables(self._library)
        _LOG.warning(
            "spaCy itself finds English words, which is slow: the kernels implement the rules of "
            "spaCy 3.8, and %s has others.",
            importlib.metadata.version("spacy"),
        )
        return None


def _readable(texts: Spans) -> Spans:
    """Return texts without the word on which spaCy fails."""
    characters = texts.characters
    places = np.flatnonzero(characters.codes == ord("_")) - _UNREADABLE.index("_")
    places = characters.beginning(_UNREADABLE, places)
    if not len(places):
        return texts
    return texts_as_spans([text.replace(_UNREADABLE, "") for text in texts.strings()])


def _with_tokens(words: Spans, kinds: Kinds, known: "_ChunkTables") -> tuple[Spans, Kinds]:
    """Return words and their kinds, after spaCy has split the remaining chunks."""
    unsplit = kinds == _UNSPLIT
    if not unsplit.any():
        return words, kinds
    chunks = words[unsplit].strings()
    added = known.add(list(dict.fromkeys(chunks)))
    tokens = np.array([token for chunk in chunks for token in added[chunk]], np.int64)
    counts = np.ones(len(kinds), np.int64)
    counts[unsplit] = [len(added[chunk]) for chunk in chunks]
    places = np.flatnonzero(np.repeat(unsplit, counts))
    lengths = tokens >> _KIND_BITS
    # The ends of tokens, counted first from the first chunk, then from each token's own chunk.
    ends = cumsum_from_zero(lengths + (tokens & _AFTER_SPACE > 0))
    shift = words.starts[unsplit] - ends[cumsum_from_zero(counts[unsplit])[:-1]]
    ends = ends[1:] + np.repeat(shift, counts[unsplit])
    starts, stops, kinds = (np.repeat(old, counts) for old in (words.starts, words.ends, kinds))
    starts[places], stops[places] = ends - lengths, ends
    kinds[places] = tokens & _KINDS & ~_AFTER_SPACE
    return Spans(words.characters, starts, stops, cumsum_from_zero(counts)[words.offsets]), kinds


def _num_sentences(texts: Spans, words: Spans, kinds: Kinds) -> Places:
    """Return the number of sentences of each text, given its words and their kinds.

    After an end mark a sentence begins with the next word or token of white space. The end of each
    text counts as a last token, of other punctuation.
    """
    last = words.offsets[1:]
    starts, ends = (
        np.insert(words.starts, last, texts.ends),
        np.insert(words.ends, last, texts.ends),
    )
    kinds, offsets = np.insert(kinds, last, _OTHER), words.offsets + np.arange(len(words.offsets))
    before = np.append(0, ends)[:-1]
    # White space is a token, except for a single space after a word.
    is_blank = texts.characters.codes[before] == _BLANK
    before[offsets[:-1]], is_blank[offsets[:-1]] = texts.starts, False
    begins = (starts - before > is_blank) | (kinds == _WORD)
    borders = begins.copy()
    borders[offsets[1:] - 1] = True
    stops = np.flatnonzero(borders)
    after_end = np.zeros(len(kinds), np.bool_)
    after_end[stops[np.searchsorted(stops, np.flatnonzero(kinds == _END), side="right")]] = True
    return np.diff(cumsum_from_zero(begins & after_end)[offsets]) + (texts.lengths > 0)


class _Spacy:
    """spaCy with its English rules, which takes a second to load."""

    def __init__(self) -> None:
        spacy = importlib.import_module("spacy")
        self._pipeline = spacy.blank("en")
        self._ends = self._pipeline.add_pipe("sentencizer").punct_chars
        self._pipeline.max_length = 1 << 40
        self._tokenizer = self._pipeline.tokenizer
        orth = importlib.import_module("spacy.symbols").ORTH
        self.specials = {
            text: tuple(token[orth] for token in tokens)
            for text, tokens in self._tokenizer.rules.items()
        }
        """The tokens of each special case."""

    @property
    def fingerprint(self) -> str:
        """A hash of the rules."""
        affixes = ("prefix_search", "suffix_search", "infix_finditer", "url_match")
        patterns = [getattr(self._tokenizer, name).__self__.pattern for name in affixes]
        odd = self._tokenizer.token_match, self._tokenizer.faster_heuristics
        rules = [*patterns, odd, sorted(self.specials.items()), sorted(self._ends)]
        return hashlib.sha256(repr(rules).encode()).hexdigest()

    def words(self, text: str) -> list[str]:
        """Return the words of a text."""
        with self._pipeline.memory_zone():
            words = [token.text.strip() for token in self._tokenizer(text)]
        return [word for word in words if word]

    def num_sentences(self, line: str) -> int:
        """Return the number of sentences in a line."""
        with self._pipeline.memory_zone():
            return len(list(self._pipeline(line.replace(_UNREADABLE, "")).sents))

    def is_punctuation(self, character: str) -> bool:
        """Return whether a character is punctuation."""
        symbols = importlib.import_module("spacy.attrs")
        is_punctuation = self._pipeline.vocab.lex_attr_getters[symbols.IS_PUNCT]
        return bool(is_punctuation(character))

    def phrases(self) -> dict[str, tuple[str, ...]]:
        """Return the PhraseMatcher's phrases: special cases as the affix rules split them."""
        mine = self._tokenizer
        names = ("prefix_search", "suffix_search", "infix_finditer", "url_match")
        plain = type(mine)(mine.vocab, **{name: getattr(mine, name) for name in names})
        finders = mine.find_prefix, mine.find_infix, mine.find_suffix
        return {
            text: tuple(token.text for token in plain(text))
            for text in self.specials
            if any(find(text) for find in finders) or " " in text
        }

    def split(self, chunks: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each chunk, as _ChunkTables stores them."""
        with self._pipeline.memory_zone():
            # The line feeds between chunks are tokens, so no chunk affects another one.
            tokens = self._tokenizer("\n".join(chunks))
            columns = tokens.to_array(["ORTH", "LENGTH", "SPACY", "IS_PUNCT"])
            ids = [self._pipeline.vocab.strings[mark] for mark in self._ends]
            feed = self._pipeline.vocab.strings["\n"]
        orth, length, space, is_punctuation = columns.T
        kinds = np.where(np.isin(orth, ids), _END, np.where(is_punctuation > 0, _OTHER, _WORD))
        spaced = np.concatenate(([0], space[:-1])).astype(np.int64)
        packed = length.astype(np.int64) << _KIND_BITS | kinds | spaced * _AFTER_SPACE
        borders = np.flatnonzero(orth == feed)
        tokens_of = np.split(packed[orth != feed], borders - np.arange(len(borders)))
        return [tokens.tolist() for tokens in tokens_of]


class _ChunkTables:
    """The tables of the kernels: classes of characters, borders, and chunks with their tokens.

    Characters next to a border within a phrase have numbers, starting with 1; the numbers on both
    sides of a border are its indices in `borders`.
    """

    def __init__(self, spacy: _Spacy) -> None:
        self._spacy = spacy
        phrases = spacy.phrases()
        # Phrases that equal their special cases change nothing.
        replaced = {
            phrase[:2] for text, phrase in phrases.items() if phrase != spacy.specials[text]
        }
        pairs = {pair for phrase in phrases.values() for pair in itertools.pairwise(phrase)}
        texts = sorted(first + second for first, second in replaced)
        self._is_loose = re.compile("|".join(map(re.escape, texts))).search
        self._classes = _classes(spacy)
        self._numbers = np.zeros(NUM_CODE_POINTS, np.uint8)
        beside = sorted({side for first, second in pairs for side in (first[-1], second[0])})
        self._numbers[code_points("".join(beside))] = np.arange(1, len(beside) + 1)
        self._borders = np.zeros((len(beside) + 1, len(beside) + 1), np.uint8)
        for border, bit in ((replaced, _REPLACED), (pairs, _LINKED)):
            for first, second in border:
                left, right = self._numbers[code_points(first[-1] + second[0])]
                self._borders[left, right] |= bit
        self._flags = dict.fromkeys(_UNITS, _UNIT)
        specials = [text for text in spacy.specials if text.isascii() and text.strip()]
        for flagged, flag in ((specials, _SPECIAL), (filter(str.isascii, texts), _PAIR)):
            for text in flagged:
                self._flags[text] = self._flags.get(text, 0) | flag
        self._reset()

    @property
    def rules(self) -> "_Rules":
        """The tables that the kernels look up."""
        return _Rules(self._classes, self._numbers, self._borders, self._table, self._codes)

    def _reset(self) -> None:
        """Forget all chunks except special cases, pairs and units."""
        self._num_rows = self._num_codes = 0
        self._table = np.zeros((1 << 12, _NUM_COLUMNS), np.int64)
        self._codes = np.empty(1 << 15, np.uint32)
        self.add([*self._flags])

    def make_room(self) -> None:
        """Forget all chunks if there are too many."""
        if self._num_rows > _MAX_CHUNKS or self._num_codes > _MAX_CODES:
            self._reset()

    def add(self, chunks: Sequence[str]) -> dict[str, list[int]]:
        """Let spaCy split distinct new chunks, store the chunks' tokens, and return the tokens."""
        tokens_of = self._spacy.split(chunks)
        rows = np.zeros((len(chunks), _NUM_COLUMNS), np.int64)
        rows[:, _KEY] = texts_as_spans(chunks).hashes().view(np.int64)
        known: list[int] = []
        for row, chunk, tokens in zip(rows, chunks, tokens_of, strict=True):
            flags = self._flags.get(chunk, 0)
            if not flags and self._is_loose(chunk):
                flags = _LOOSE
            first = self._num_codes + len(known)
            row[_CODES : _FLAGS + 1] = first, len(chunk), len(tokens), flags | _USED
            known += [*map(ord, chunk), *tokens]
        self._store(rows, np.array(known, np.uint32))
        return dict(zip(chunks, tokens_of, strict=True))

    def _store(self, rows: Places, codes: Codes) -> None:
        num_codes, num_rows = self._num_codes + len(codes), self._num_rows + len(rows)
        if num_codes > len(self._codes):
            self._codes = np.resize(self._codes, 1 << num_codes.bit_length())
        self._codes[self._num_codes : num_codes] = codes
        if 2 * num_rows > len(self._table):
            used = self._table[self._table[:, _FLAGS] > 0]
            self._table = np.zeros((4 << num_rows.bit_length(), _NUM_COLUMNS), np.int64)
            _place(self._table, used)
        _place(self._table, rows)
        self._num_codes, self._num_rows = num_codes, num_rows


class _Rules(NamedTuple):
    """The tables that the kernels look up."""

    classes: _Classes
    """The class of each character."""
    numbers: Kinds
    """The number of each character; 0 if it is never next to a border within a phrase."""
    borders: _Borders
    table: Places
    """The hash table of chunks."""
    known: Codes
    """The code points and tokens of the chunks."""


def _classes(spacy: _Spacy) -> _Classes:
    classes = np.full(NUM_CODE_POINTS, _FOREIGN, np.uint16)
    classes[:_NUM_ASCII] = 0
    for characters, bit in (
        (string.ascii_uppercase, _UPPER),
        (string.ascii_lowercase, _LOWER),
        (string.digits, _DIGIT),
        (_QUOTES, _QUOTE),
        (_PREFIXES, _PREFIX),
        (_MARKS, _MARK),
        (_DOTTED, _DOTS),
        ("+-*^", _SIGN),
        (":/<=>~", _JOINER),
        (filter(spacy.is_punctuation, map(chr, range(_NUM_ASCII))), _PUNCTUATION),
    ):
        classes[code_points("".join(characters))] |= bit
    classes[kinds_of_characters() & SPACE > 0] |= _WHITE
    # Other characters must not count as letters.
    classes[:_NUM_ASCII][classes[:_NUM_ASCII] == 0] = _PLAIN
    return classes


@kernel
def _find(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return the row of a chunk, given as a range of code points, or _UNKNOWN."""
    mask = len(rules.table) - 1
    key = np.int64(hash_of(codes[start:end]))
    row = (key >> 32) & mask
    while rules.table[row, _FLAGS]:
        if rules.table[row, _KEY] == key and rules.table[row, _LENGTH] == end - start:
            first, at = rules.table[row, _CODES], 0
            while at < end - start and rules.known[first + at] == codes[start + at]:
                at += 1
            if at == end - start:
                return int(row)
        row = (row + 1) & mask
    return _UNKNOWN


@kernel
def _flags_of(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return the flags of a range of code points; 0 if it is too long to have any."""
    if not 0 < end - start <= _MAX_FLAGGED:
        return 0
    row = _find(codes, start, end, rules)
    return int(rules.table[row, _FLAGS]) if row >= 0 else 0


@kernel
def _place(table: Places, rows: Places) -> None:
    """Insert rows into a hash table that has room for them."""
    mask = len(table) - 1
    for index in range(len(rows)):
        row = (rows[index, _KEY] >> 32) & mask
        while table[row, _FLAGS]:
            row = (row + 1) & mask
        for column in range(_NUM_COLUMNS):
            table[row, column] = rows[index, column]


@kernel
def _prefix_codes(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return the length of the prefix of an ASCII range; 0 if there is none."""
    code = codes[start]
    if rules.classes[code] & _PREFIX:
        return 1
    if code == _DOT:
        at = start + 1
        while at < end and codes[at] == _DOT:
            at += 1
        return at - start if at - start > 1 else 0
    if code == _PLUS:
        return 0 if start + 1 < end and rules.classes[codes[start + 1]] & _DIGIT else 1
    # A$, C$, US$
    if (code == _A or code == _C) and start + 1 < end:
        return 2 if codes[start + 1] == _DOLLAR else 0
    if code == _U and start + 2 < end and codes[start + 1] == _S:
        return 3 if codes[start + 2] == _DOLLAR else 0
    return 0


@kernel
def _suffix_codes(  # noqa: PLR0911  rules side by side
    codes: Codes, start: int, end: int, rules: _Rules
) -> int:
    """Return the length of the suffix of an ASCII range; 0 if there is none."""
    if end <= start:
        return 0
    last = codes[end - 1]
    if rules.classes[last] & _MARK:
        return 1
    if last == _DOT:
        return _stop_codes(codes, start, end, rules)
    before = codes[end - 2] if end - start > 1 else np.uint32(0)
    if before == _APOSTROPHE and (last == _SMALL_S or last == _S):
        return 2
    if last == _PLUS:
        return 1 if rules.classes[before] & _DIGIT else 0
    if last == _DOLLAR:
        return _currency_codes(codes, start, end, rules)
    return _unit_codes(codes, start, end, rules)


@kernel
def _stop_codes(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return the length of the suffix of full stops at the end of a range."""
    at = end
    while at > start and codes[at - 1] == _DOT:
        at -= 1
    if end - at > 1:
        return end - at
    if at > start and rules.classes[codes[at - 1]] & _DOTS:
        return 1
    upper = at > start + 1 and rules.classes[codes[at - 1]] & rules.classes[codes[at - 2]] & _UPPER
    return 1 if upper else 0


@kernel
def _currency_codes(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return the length of $, US$, C$ or A$ after a digit, at the end of a range that ends in $."""
    at = end - 1
    if at > start and (codes[at - 1] == _A or codes[at - 1] == _C):
        at -= 1
    elif at > start + 1 and codes[at - 1] == _S and codes[at - 2] == _U:
        at -= 2
    return end - at if at > start and rules.classes[codes[at - 1]] & _DIGIT else 0


@kernel
def _unit_codes(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return the length of the unit after the last digit of a range; 0 if there is none."""
    at = end
    while at > start and end - at <= _UNIT_CODES and not rules.classes[codes[at - 1]] & _DIGIT:
        at -= 1
    if at == start or end - at > _UNIT_CODES:
        return 0
    return end - at if _flags_of(codes, at, end, rules) & _UNIT else 0


@kernel
def _infix_codes(codes: Codes, start: int, at: int, end: int, rules: _Rules) -> int:  # noqa: C901, PLR0911  rules side by side
    """Return the length of the infix at a place of an ASCII range; 0 if there is none."""
    code = codes[at]
    after = rules.classes[codes[at + 1]] if at + 1 < end else 0
    if code == _DOT:
        last = at + 1
        while last < end and codes[last] == _DOT:
            last += 1
        if last - at > 1:
            return last - at
    if at == start:
        return 0
    before = rules.classes[codes[at - 1]]
    if code == _DOT:
        return 1 if before & (_LOWER | _QUOTE) and after & (_UPPER | _QUOTE) else 0
    if code == _COMMA:
        return 1 if before & _LETTER and after & _LETTER else 0
    if rules.classes[code] & _JOINER:
        return 1 if before & (_LETTER | _DIGIT) and after & _LETTER else 0
    is_operator = rules.classes[code] & _SIGN and before & _DIGIT and at + 1 < end
    if is_operator and (after & _DIGIT or codes[at + 1] == _MINUS):
        return 1
    if code == _MINUS and before & (_LETTER | _DIGIT):
        last = at + 1
        while last < end and codes[last] == _MINUS:
            last += 1
        if last - at <= 3 and last < end and rules.classes[codes[last]] & _LETTER:  # noqa: PLR2004  ---
            return last - at
    return 0


@kernel
def _is_address(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return whether spaCy's expression for addresses matches: _YES, _NO, or _MAYBE.

    If there is no @, a match begins with a scheme and ://, or with the host. A host extends over
    all characters that hosts may have, since none of them may follow a host.
    """
    for at in range(start, end):
        if codes[at] == _AT:
            return _MAYBE
    host, last = start, _host_end(codes, start, end, rules)
    scheme = last
    while scheme < end and codes[scheme] == _PLUS:
        scheme = _host_end(codes, scheme + 1, end, rules)
    if scheme + 2 < end and codes[scheme] == _COLON and codes[scheme + 1] == _SLASH:
        if codes[scheme + 2] != _SLASH or scheme - start < 2:  # noqa: PLR2004  the minimum length
            return _MAYBE
        host, last = scheme + 3, _host_end(codes, scheme + 3, end, rules)
    after = codes[last] if last < end else np.uint32(_SLASH)
    if after == _COLON:
        return _MAYBE
    if not (after == _SLASH or after == _QUESTION or after == _HASH):
        return _NO
    return _is_host(codes, host, last, rules)


@kernel
def _host_end(codes: Codes, at: int, end: int, rules: _Rules) -> int:
    """Return where the characters that may be in a host name end."""
    while at < end and (
        rules.classes[codes[at]] & (_LETTER | _DIGIT)
        or codes[at] == _DOT
        or codes[at] == _MINUS
        or codes[at] == _UNDERSCORE
    ):
        at += 1
    return at


@kernel
def _is_host(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return whether a range of host characters is a host: _YES, _NO, or _MAYBE for numbers.

    A host has a full stop. At least two small letters follow the last full stop, and the names
    before it have up to 64 characters and begin and end with a letter or a digit.
    """
    numbers = good = True
    begin = start
    for at in range(start, end):
        numbers = numbers and (codes[at] == _DOT or rules.classes[codes[at]] & _DIGIT > 0)
        if codes[at] == _DOT:
            good = good and 0 < at - begin <= 64  # noqa: PLR2004  see above
            if good:
                outer = rules.classes[codes[begin]] & (_LETTER | _DIGIT) > 0
                good = outer and rules.classes[codes[at - 1]] & (_LETTER | _DIGIT) > 0
            begin = at + 1
    if numbers:
        return _MAYBE
    if not good or begin == start or not 1 < end - begin < 64:  # noqa: PLR2004  two to 63 letters
        return _NO
    for at in range(begin, end):
        if not rules.classes[codes[at]] & _LOWER:
            return _NO
    return _YES


@kernel
def _kind(codes: Codes, start: int, end: int, rules: _Rules) -> int:
    """Return the kind of an ASCII token."""
    code = codes[start]
    if not rules.classes[code] & _PUNCTUATION:
        return _WORD
    if end - start == 1:
        return _END if code == _DOT or code == _BANG or code == _QUESTION else _OTHER
    for at in range(start, end):
        if not rules.classes[codes[at]] & _PUNCTUATION:
            return _WORD
    return _OTHER


@kernel
def _write_known(row: int, at: int, count: int, rules: _Rules, scratch: Places) -> int:
    """Write the tokens of a table row, which begin at a place; return the new number of tokens."""
    first = rules.table[row, _CODES] + rules.table[row, _LENGTH]
    for index in range(first, first + rules.table[row, _COUNT]):
        size = np.int64(rules.known[index])
        at = int(at + (size >> _KIND_BITS) + (size & _AFTER_SPACE > 0))
        scratch[0, count] = (at << _KIND_BITS) | (size & _KINDS)
        count += 1
    return count


@kernel
def _split_middle(
    codes: Codes,
    place: tuple[int, int, int],
    rules: _Rules,
    scratch: Places,
) -> int:
    """Write where the tokens of an ASCII range between affixes end.

    Args:
        codes: Code points of a text.
        place: Where the range begins and ends, and how many tokens precede it.
        rules: The tables to look up.
        scratch: Output: the ends and kinds of tokens.

    Returns:
        The new number of tokens, or _UNKNOWN.
    """
    start, end, count = place
    if _flags_of(codes, start, end, rules) & _SPECIAL:
        row = _find(codes, start, end, rules)
        return _write_known(row, start, count, rules, scratch)
    at = begin = start
    first = count
    while at < end:
        length = _infix_codes(codes, start, at, end, rules)
        if length and at > start:
            if at > begin:
                scratch[0, count] = (at << _KIND_BITS) | _kind(codes, begin, at, rules)
                count += 1
            begin = at + length
            scratch[0, count] = (begin << _KIND_BITS) | _kind(codes, at, begin, rules)
            count += 1
        at += max(length, 1)
    address = _is_address(codes, start, end, rules) if count > first else _NO
    if address == _MAYBE:
        return _UNKNOWN
    if address == _YES:
        count, begin = first, start
    if begin < end:
        scratch[0, count] = (end << _KIND_BITS) | _kind(codes, begin, end, rules)
        count += 1
    return count


@kernel
def _split(  # noqa: C901  the loop of spaCy
    codes: Codes,
    place: tuple[int, int],
    rules: _Rules,
    scratch: Places,
) -> int:
    """Write where the tokens of an ASCII chunk end; return their number, or _UNKNOWN.

    The chunk is not in the table. The steps are those of Tokenizer._split_affixes and
    _attach_tokens of spaCy 3.8.
    """
    low, high = place
    count = num_suffixes = 0
    before = _UNKNOWN
    done = False
    while low < high and high - low != before and not done:
        before = high - low
        prefix = _prefix_codes(codes, low, high, rules)
        suffix = 0
        done = prefix > 0 and _flags_of(codes, low + prefix, high, rules) & _SPECIAL != 0
        if not done:
            suffix = _suffix_codes(codes, low + prefix, high, rules)
            if suffix and _flags_of(codes, low, high - suffix, rules) & _SPECIAL:
                done, prefix = True, 0
        if prefix:
            low += prefix
            scratch[0, count] = (low << _KIND_BITS) | _kind(codes, low - prefix, low, rules)
            count += 1
        if suffix:
            scratch[1, num_suffixes] = high
            num_suffixes += 1
        high -= suffix
        done = done or (low < high and _flags_of(codes, low, high, rules) & _SPECIAL != 0)
    if low < high:
        count = _split_middle(codes, (low, high, count), rules, scratch)
        if count < 0:
            return _UNKNOWN
    for index in range(num_suffixes - 1, -1, -1):
        last = scratch[1, index]
        scratch[0, count] = (last << _KIND_BITS) | _kind(codes, high, last, rules)
        high = last
        count += 1
    return count


@kernel
def _chunk_end(codes: Codes, at: int, end: int, rules: _Rules) -> tuple[int, int]:
    """Return where the chunk that begins at a place ends, and the classes of its characters.

    A chunk that has only the classes of letters consists of ASCII letters.
    """
    found = 0
    while at < end:
        kind = rules.classes[codes[at]]
        if kind & _WHITE:
            break
        found |= kind
        at += 1
    return at, found


@kernel
def _has_replaced(
    codes: Codes,
    place: tuple[int, int],
    rules: _Rules,
    scratch: Places,
) -> bool:
    """Return whether two adjacent tokens of an ASCII chunk may begin a replaced phrase.

    Args:
        codes: Code points of a text.
        place: Where the chunk begins, and how many tokens it has.
        rules: The tables to look up.
        scratch: The ends and kinds of tokens.
    """
    start, count = place
    for index in range(1, count):
        border, end = scratch[0, index - 1] >> _KIND_BITS, scratch[0, index] >> _KIND_BITS
        if (
            rules.borders[rules.numbers[codes[border - 1]], rules.numbers[codes[border]]]
            & _REPLACED
            and _flags_of(codes, start, end, rules) & _PAIR
        ):
            return True
        start = border
    return False


@kernel
def _read_chunk(
    codes: Codes,
    place: tuple[int, int, int],
    rules: _Rules,
    scratch: Places,
) -> tuple[int, bool]:
    """Write where the tokens of a chunk end.

    Args:
        codes: Code points of a text.
        place: Where the chunk begins and ends, and the classes of its characters.
        rules: The tables to look up.
        scratch: Output: the ends and kinds of tokens.

    Returns:
        The number of tokens, or _UNKNOWN; whether the chunk is loose.
    """
    start, end, kind = place
    row = _find(codes, start, end, rules)
    if row >= 0:
        count = _write_known(row, start, 0, rules, scratch)
        return count, rules.table[row, _FLAGS] & _LOOSE != 0
    if kind & _FOREIGN:
        return _UNKNOWN, True
    if not kind & _NO_LETTER:
        scratch[0, 0] = end << _KIND_BITS
        return 1, False
    count = _split(codes, (start, end), rules, scratch)
    replaced = count > 1 and _has_replaced(codes, (start, count), rules, scratch)
    return _UNKNOWN if replaced else count, replaced or count < 0


@kernel
def _split_texts(  # noqa: PLR0913, PLR0917  texts, rules, memory, and where to write
    codes: Codes,
    begins: Places,
    stops: Places,
    rules: _Rules,
    scratch: Places,
    starts: Places,
    ends: Places,
    kinds: Kinds,
    offsets: Places,
) -> None:
    """Write where the words of texts begin and end, and their kinds.

    Args:
        codes: Code points of texts.
        begins: Where each text begins.
        stops: Where each text ends.
        rules: The tables to look up.
        scratch: Memory for the tokens of a text, int64[2, n].
        starts: Output, int64[len(codes)]: where words begin.
        ends: Output, int64[len(codes)]: where words end.
        kinds: Output, uint8[len(codes)]: the kinds of words.
        offsets: Output: where the words of each text after the first begin.
    """
    num_words = 0
    for text in range(len(begins)):
        at, stop = begins[text], stops[text]
        previous = group = group_words = _NOWHERE
        unsure = False
        while at < stop:
            if rules.classes[codes[at]] & _WHITE:
                at += 1
                continue
            start = at
            at, kind = _chunk_end(codes, start, stop, rules)
            linked = start - previous == 2 and _is_link(codes, previous, rules)  # noqa: PLR2004
            if not linked:
                group, group_words, unsure = start, num_words, False
            count, loose = _read_chunk(codes, (start, at, kind), rules, scratch)
            unsure |= loose
            if linked and unsure:  # read the chunks of the group as one
                num_words, start = group_words, group
                row = _find(codes, start, at, rules)
                count = _write_known(row, start, 0, rules, scratch) if row >= 0 else _UNKNOWN
            previous = at - 1
            if count < 0:
                starts[num_words], ends[num_words], kinds[num_words] = start, at, _UNSPLIT
                num_words += 1
            for index in range(count):
                token = scratch[0, index]
                starts[num_words] = start + (token & _AFTER_SPACE > 0)
                ends[num_words] = start = token >> _KIND_BITS
                kinds[num_words] = token & _KINDS & ~_AFTER_SPACE
                num_words += 1
        offsets[text + 1] = num_words


@kernel
def _is_link(codes: Codes, last: int, rules: _Rules) -> bool:
    """Return whether a single space links the chunk that ends at a place to the next chunk."""
    if codes[last + 1] != _BLANK:
        return False
    return bool(rules.borders[rules.numbers[codes[last]], rules.numbers[codes[last + 2]]] & _LINKED)
