"""C4's rules for the lines and pages of English web text (Raffel et al. 2020, JMLR 21-140).

             @paper                              @datatrove, @fineweb (0.10.1)
line ends    . ? ! "                             . ? ! " '      (@fineweb: any)
a line's     5 words or more, counted after      3 words or more, counted before
             citations are removed
a page's     3 sentences or more, by end marks   5 sentences or more, by spaCy's sentencizer

@fineweb is the filter of the FineWeb recipe: datatrove's, set to keep lines with any ending. C4's
list of bad words is not included, and no profile looks for them. The metrics depend on the lines
that the line rules keep, so thresholds of line rules are not exact: the effect of another value
cannot be computed without the text.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from pipelines.compiled import kernel
from pipelines.corpus.languages import LANGUAGES
from pipelines.quality.batch import Column, TextBatch
from pipelines.quality.characters import AFTER_END, ENDING, SPACE, Kinds, code_points
from pipelines.quality.profile import BatchMeasure, Bounds, Profile, Threshold
from pipelines.quality.spans import Characters, Codes, Flags, Places, Spans, insert_spans
from pipelines.quality.words import DATATROVE, ENGLISH, UNSPACED

PAPER = "C4 (JMLR 21-140), section 2.2"
PAPER_CODE = "tensorflow_datasets, text/c4_utils.py"
DATATROVE_CODE = "datatrove 0.10.1, C4QualityFilter"
FINEWEB_CODE = "datatrove, examples/fineweb.py (05194d3)"

METRICS = ("sentences", "lorem_ipsum", "curly_brackets")

LOREM_IPSUM = ("lorem ipsum",)
JAVASCRIPT = ("javascript",)
POLICIES = (
    "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies",
    "use cookies",
)  # fmt: skip

_PHRASES = (*LOREM_IPSUM, *JAVASCRIPT, *POLICIES)
_LOREM_IPSUM, _JAVASCRIPT, _BRACE = 1, 2, 1 << len(_PHRASES)
_POLICY = _BRACE - 1 - _LOREM_IPSUM - _JAVASCRIPT
_RARE = "jkvm"
"""Rare letters: a phrase is searched for by the first of these letters that it contains."""
_NUM_ASCII = 128
_CITATIONS = ("[edit]", "[citation needed]")
"""The citations that are removed, in addition to numbers in brackets."""
_UPPER_A, _UPPER_Z, _SMALL_K, _KELVIN, _TO_SMALL = ord("A"), ord("Z"), ord("k"), 0x212A, 0x20
_CURLY, _DOT, _QUESTION, _EXCLAMATION = map(ord, "{.?!")
_NOTHING, _HEAD = np.uint32(0), 2


def _measure(*, paper: bool) -> BatchMeasure:
    marks = '.?!"' if paper else ".?!\"'"

    def measure(batch: TextBatch, bounds: Bounds) -> tuple[TextBatch, tuple[Column, ...]]:
        before = batch.texts.lines().stripped()
        lines, cited = before.without(*_citations(before.characters))
        words = before.num_words()
        if paper:
            words[cited] = lines[cited].num_words()
        stay = ~(words < bounds["min_line_words"]) & ~_long_worded(before, bounds["max_word_chars"])
        if bounds["terminal_punctuation"] > 0:
            stay &= lines.ending_in(*marks) & ~lines.ending_in("...")
        prose = lines[stay]
        found = _find_in(prose)
        javascript, policy = found & _JAVASCRIPT > 0, found & _POLICY > 0
        lorem_ipsum = prose.sums(found & _LOREM_IPSUM > 0)
        curly_brackets = prose.sums((found & _BRACE > 0) & ~javascript)
        good = ~(javascript | policy)
        page = prose[good].joined(feeds=1)
        stay[stay] = good
        sentences = _paper_sentences(page) if paper else _spacy_sentences(page, batch)
        counts = (page.sums(sentences), lorem_ipsum, curly_brackets)
        return _with_lines(batch, before, page, stay, cited), counts

    return measure


# --- the lines that are kept


def _citations(characters: Characters) -> tuple[Places, Places]:
    """Return where citations begin and end, each within one line: [12], [], [edit]."""
    codes = characters.codes
    starts = np.flatnonzero(codes == ord("["))
    ends = starts + 1
    numbers = np.arange(len(starts))
    while len(numbers):
        numbers = numbers[np.strings.isdecimal(codes[ends[numbers]].view("U1"))]
        ends[numbers] += 1
    ends = np.where(codes[ends] == ord("]"), ends + 1, starts)
    for word in _CITATIONS:
        ends[np.searchsorted(starts, characters.beginning(word, starts))] += len(word)
    found = ends > starts
    return starts[found], ends[found]


def _long_worded(lines: Spans, most: float) -> Flags:
    """Return which lines have a word of more than `most` characters."""
    found = lines.lengths > most
    if found.any():
        words = lines[found].words()
        found[found] = words.sums(words.lengths > most) > 0
    return found


def _find_in(lines: Spans) -> Places:
    """Return the phrases in each line, ignoring case, as bits: one per phrase, and _BRACE."""
    found = np.zeros(len(lines.starts), np.int64)
    _find_phrases(lines.characters.codes, lines.starts, lines.ends, *_phrase_table(), found)
    return found


@cache
def _phrase_table() -> tuple[Codes, Places, Flags]:
    """Return a row per phrase, the phrases for each pair of characters, and the rare characters.

    A row has the position of the phrase's pair, its length and its characters, padded with 0. The
    pair is the phrase's first letter of _RARE and the character after it.
    """
    rows = np.zeros((len(_PHRASES), _HEAD + max(map(len, _PHRASES))), np.uint32)
    pairs = np.zeros((_NUM_ASCII, _NUM_ASCII), np.int64)
    rare = np.zeros(_NUM_ASCII, np.bool_)
    rare[code_points(_RARE + _RARE.upper() + "{")] = True
    for number, phrase in enumerate(_PHRASES):
        at = phrase.index(next(letter for letter in _RARE if letter in phrase))
        rows[number, : _HEAD + len(phrase)] = [at, len(phrase), *map(ord, phrase)]
        pairs[ord(phrase[at]), ord(phrase[at + 1])] |= 1 << number
    return rows, pairs, rare


@kernel
def _find_phrases(  # noqa: PLR0913, PLR0917  ranges, a table
    codes: Codes,
    starts: Places,
    ends: Places,
    rows: Codes,
    pairs: Places,
    rare: Flags,
    found: Places,
) -> None:
    for line in range(len(starts)):
        part = codes[starts[line] : ends[line]]
        for at in range(len(part)):
            code = part[at] if part[at] != _KELVIN else np.uint32(_SMALL_K)
            if code >= _NUM_ASCII or not rare[code]:
                continue
            if code == _CURLY:
                found[line] |= _BRACE
                continue
            code, after = _small(code), _small(part[at + 1] if at + 1 < len(part) else _NOTHING)
            wanted = pairs[code, after] if 0 < after < _NUM_ASCII else np.int64(0)
            row = 0
            while wanted:
                if wanted & 1 and _is_phrase(part, at - np.int64(rows[row, 0]), rows[row]):
                    found[line] |= np.int64(1) << row
                wanted >>= 1
                row += 1


@kernel
def _is_phrase(line: Codes, first: Any, row: Codes) -> bool:
    """Return whether the phrase of a row begins at a place of a line."""
    length = np.int64(row[1])
    if first < 0 or first + length > len(line):
        return False
    for at in range(length):  # noqa: SIM110  no generators in compiled code
        if _small(line[first + at]) != row[_HEAD + at]:
            return False
    return True


@kernel
def _small(code: Any) -> Any:
    """Return A to Z and the Kelvin sign as small letters, and any other character unchanged.

    The only other character whose lower case has an ASCII letter is İ, which becomes i and a
    combining dot. It needs no rule, because no phrase ends with i or contains that dot.
    """
    if _UPPER_A <= code <= _UPPER_Z:
        return code + _TO_SMALL
    return _SMALL_K if code == _KELVIN else code


# --- sentences


def _paper_sentences(lines: Spans) -> Places:
    """Return the number of sentences per line; they end with marks before white space."""
    counts = np.zeros(len(lines.starts), np.int64)
    characters = lines.characters
    _count_ends(characters.codes, characters.kinds, lines.starts, lines.ends, counts)
    return np.maximum(1, counts)


@kernel
def _count_ends(codes: Codes, kinds: Kinds, starts: Places, ends: Places, counts: Places) -> None:
    for line in range(len(starts)):
        start, part = starts[line], kinds[starts[line] : ends[line]]
        closed = 0
        for at in range(len(part)):
            if not part[at] & ENDING or at < closed or not _is_mark(codes[start + at]):
                continue
            closed = at + 1
            while closed < len(part) and _is_mark(codes[start + closed]):
                closed += 1
            while closed < len(part) and part[closed] & AFTER_END:
                closed += 1
            counts[line] += closed == len(part) or part[closed] & SPACE > 0


@kernel
def _is_mark(code: int) -> bool:
    return code == _DOT or code == _QUESTION or code == _EXCLAMATION  # noqa: PLR1714  not a tuple in compiled code


def _spacy_sentences(lines: Spans, batch: TextBatch) -> Places:
    """Return the number of sentences that spaCy's sentencizer finds in each line."""
    # A line with no end marks before its very end is one sentence, so spaCy is not needed.
    has_marks = lines.stripped_behind(ENDING).having(ENDING)
    sentences = np.ones(len(has_marks), np.int64)
    if has_marks.any():
        sentences[has_marks] = batch.libraries.num_sentences(lines[has_marks].strings())
    return sentences


# --- the pages that these lines make


def _with_lines(
    batch: TextBatch, before: Spans, page: Spans, stay: Flags, cited: Flags
) -> TextBatch:
    """Return a batch of texts that consist of the kept lines, with the words that are known.

    Args:
        batch: The texts.
        before: The lines of the texts.
        page: The lines that are kept, without citations.
        stay: Which lines are kept.
        cited: Which lines had citations.
    """
    last = len(page.characters.codes) - 1
    starts = np.append(page.starts, last)[page.offsets[:-1]]
    ends = np.where(page.counts > 0, np.append(page.ends, last)[page.offsets[1:] - 1], starts)
    pages = Spans(page.characters, starts, ends, batch.texts.offsets).stripped()
    strings = [
        text if page == text else page
        for text, page in zip(batch.strings, pages.strings(), strict=True)
    ]
    words = batch.known_words(DATATROVE)
    if words is None or words.characters is not batch.texts.characters:
        return batch.with_texts(strings, pages)
    changed = before.sums(stay & cited) > 0
    # White space between lines is a token, so a line's words do not depend on other lines.
    first = np.searchsorted(words.starts, before.starts)
    inside = np.repeat(stay, np.diff(first, append=len(words.starts)))
    words = words[inside & ~np.repeat(changed, words.counts)]
    if changed.any():
        places = np.flatnonzero(changed)
        own = replace(
            pages,
            starts=pages.starts[places],
            ends=pages.ends[places],
            offsets=np.arange(len(places) + 1),
        )
        words = insert_spans(words, batch.split(own, DATATROVE), places)
    return batch.with_texts(strings, pages, {DATATROVE: words})


def _thresholds(
    *, line_words: int, sentences: int, terminal: int, sources: tuple[str, str]
) -> tuple[Threshold, ...]:
    main, code = sources
    return (
        Threshold("max_word_chars", 1000, "", "lines with a longer word are removed", code),
        Threshold(
            "terminal_punctuation", terminal, "",
            "1: remove lines without punctuation at the end; 0: keep them", main,
        ),
        Threshold("min_line_words", line_words, "", "lines with fewer words are removed", main),
        Threshold(
            "max_lorem_ipsum", 0, "lorem-ipsum",
            'maximum number of lines with "lorem ipsum"', main,
        ),
        Threshold(
            "max_curly_brackets", 0, "curly-brackets", "maximum number of lines with {", main
        ),
        Threshold(
            "min_sentences", sentences, "few-sentences",
            "minimum number of sentences in the remaining lines", main,
        ),
    )  # fmt: skip


PROFILES = (
    Profile(
        family="c4",
        variant="paper",
        alias=True,
        metrics=METRICS,
        thresholds=_thresholds(line_words=5, sentences=3, terminal=1, sources=(PAPER, PAPER_CODE)),
        measure_batch=_measure(paper=True),
        languages=LANGUAGES - UNSPACED,
    ),
    Profile(
        family="c4",
        variant="datatrove",
        metrics=METRICS,
        thresholds=_thresholds(
            line_words=3, sentences=5, terminal=1, sources=(DATATROVE_CODE, DATATROVE_CODE)
        ),
        measure_batch=_measure(paper=False),
        words=DATATROVE,
        languages=frozenset({ENGLISH}),
    ),
    Profile(
        family="c4",
        variant="fineweb",
        metrics=METRICS,
        thresholds=_thresholds(
            line_words=3, sentences=5, terminal=0, sources=(FINEWEB_CODE, DATATROVE_CODE)
        ),
        measure_batch=_measure(paper=False),
        words=DATATROVE,
        languages=frozenset({ENGLISH}),
    ),
)
