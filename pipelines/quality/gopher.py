"""Gopher's quality rules for English (Rae et al. 2021, arXiv 2112.11446, appendix A1.1).

             @paper                             @datatrove (0.10.1)
words        separated by spaces (zh: jieba)    spaCy's; those of punctuation alone are left out
                                                of the number and the mean length
bullets      • - *                              • -
stop words   distinct, in any case              distinct, as written
"""

from collections.abc import Collection, Sequence
from functools import cache

import numpy as np

from pipelines.compiled import kernel
from pipelines.quality.batch import Column, TextBatch
from pipelines.quality.characters import LETTER, SYMBOL
from pipelines.quality.profile import Bounds, Profile, Threshold
from pipelines.quality.spans import Codes, Floats, Places, Spans, ratio
from pipelines.quality.words import CHINESE, DATATROVE, ENGLISH, SPACES

PAPER = "Gopher (arXiv 2112.11446), A1.1"

ENGLISH_STOP_WORDS = frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})

CHINESE_STOP_WORDS = frozenset("的年在月是和日了於·為有被人中为他與後也而由")
"""The stop words in FineWeb-2's configs/cmn_Hani.yml (commit 05e6729); each is one character."""

METRICS = (
    "words", "word_length", "hashes", "ellipses", "bullet_lines", "ellipsis_lines",
    "alphabetic_words", "stop_words",
)  # fmt: skip

_UPPER_A, _UPPER_Z, _TO_LOWER = ord("A"), ord("Z"), 0x20
_CODES = 1 << 16


def datatrove_metrics(batch: TextBatch, stop_words: Collection[str]) -> tuple[Column, ...]:
    """Return the metrics (METRICS) as datatrove's GopherQualityFilter computes them."""
    words = batch.words(DATATROVE)
    plain = words[words.lacking(SYMBOL)]
    return (
        plain.counts,
        ratio(plain.sums(plain.lengths), plain.counts),
        *_symbols(batch.texts, words),
        *_line_shares(batch.texts, bullets="•-"),
        ratio(words.sums(words.having(LETTER)), words.counts),
        count_different(words, frozenset(stop_words), any_case=False),
    )


def _measure_datatrove(batch: TextBatch, _: Bounds) -> tuple[TextBatch, tuple[Column, ...]]:
    return batch, datatrove_metrics(batch, ENGLISH_STOP_WORDS)


def _measure_paper(batch: TextBatch, _: Bounds) -> tuple[TextBatch, tuple[Column, ...]]:
    words = batch.words(SPACES)
    return batch, (
        words.counts,
        ratio(words.sums(words.lengths), words.counts),
        *_symbols(batch.texts, words),
        *_line_shares(batch.texts, bullets="•-*"),
        ratio(words.sums(words.having(LETTER)), words.counts),
        _stop_words(words, batch.languages),
    )


def _symbols(texts: Spans, words: Spans) -> tuple[Floats, Floats]:
    """Return the number of hash signs and of ellipses per word."""
    ellipses = texts.count("…") + texts.count("...")
    return ratio(texts.count("#"), words.counts), ratio(ellipses, words.counts)


def _line_shares(texts: Spans, *, bullets: str) -> tuple[Floats, Floats]:
    """Return the share of lines that begin with a bullet, and of those that end in an ellipsis."""
    lines = texts.lines().stripped()
    begun = np.isin(lines.first(), np.array([*map(ord, bullets)], np.uint32))
    ended = lines.ending_in("...", "…")
    return ratio(lines.sums(begun), lines.counts), ratio(lines.sums(ended), lines.counts)


def _stop_words(words: Spans, languages: Sequence[str]) -> Floats:
    """Return the number of different stop words in each text; NaN if its language has no list."""
    found = np.full(len(languages), np.nan)
    for own, stop_words in (({ENGLISH}, ENGLISH_STOP_WORDS), (CHINESE, CHINESE_STOP_WORDS)):
        rows = np.array([language in own for language in languages], np.bool_)
        if rows.any():
            counts = count_different(words, stop_words, any_case=own != CHINESE)
            found[rows] = counts[rows]
    return found


def count_different(words: Spans, wanted: frozenset[str], *, any_case: bool) -> Places:
    """Return how many of the words in `wanted` occur in each text.

    Args:
        words: The words of the texts.
        wanted: The words to look for, at most 63, in small letters.
        any_case: Whether A to Z are read as a to z.
    """
    codes = words.characters.codes
    table, rows = _table_of(wanted, any_case=any_case)
    counts = np.zeros(len(words.offsets) - 1, np.int64)
    where = codes, words.starts, words.ends, words.offsets
    _count_different(*where, table, rows, any_case, counts)
    return counts


@cache
def _table_of(wanted: frozenset[str], *, any_case: bool) -> tuple[Codes, Places]:
    """Return a table of words, and the bits of the rows for each first character modulo _CODES.

    A row has the length of a word and its code points, padded with 0.
    """
    table = np.zeros((len(wanted), 1 + max(map(len, wanted))), np.uint32)
    rows = np.zeros(_CODES, np.int64)
    for number, word in enumerate(sorted(wanted)):
        table[number, : len(word) + 1] = [len(word), *map(ord, word)]
        for first in {word[0], word[0].upper()} if any_case else word[0]:
            rows[ord(first) % _CODES] |= 1 << number
    return table, rows


@kernel
def _count_different(  # noqa: PLR0913, PLR0917  ranges, a table
    codes: Codes,
    starts: Places,
    ends: Places,
    offsets: Places,
    table: Codes,
    rows: Places,
    any_case: bool,
    counts: Places,
) -> None:
    for text in range(len(counts)):
        missing = np.int64(-1)
        for index in range(offsets[text], offsets[text + 1]):
            candidates, row = rows[codes[starts[index]] % _CODES] & missing, 0
            while candidates:
                if candidates & 1:
                    word = codes[starts[index] : ends[index]]
                    if _is_word(word, table[row], any_case):
                        missing ^= np.int64(1) << row
                        counts[text] += 1
                candidates >>= 1
                row += 1


@kernel
def _is_word(word: Codes, row: Codes, any_case: bool) -> bool:
    """Return whether code points spell the word of a row."""
    if len(word) != row[0]:
        return False
    for at in range(len(word)):
        code = word[at]
        if any_case and _UPPER_A <= code <= _UPPER_Z:
            code += np.uint32(_TO_LOWER)
        if code != row[at + 1]:
            return False
    return True


THRESHOLDS = (
    Threshold("min_words", 50, "few-words", "minimum number of words", PAPER),
    Threshold("max_words", 100_000, "many-words", "maximum number of words", PAPER),
    Threshold(
        "min_word_length", 3, "short-words", "minimum mean word length, in characters", PAPER
    ),
    Threshold(
        "max_word_length", 10, "long-words", "maximum mean word length, in characters", PAPER
    ),
    Threshold("max_hashes", 0.1, "hashes", "maximum number of # per word", PAPER),
    Threshold(
        "max_ellipses", 0.1, "ellipses", "maximum number of ellipses (... or …) per word", PAPER
    ),
    Threshold(
        "max_bullet_lines", 0.9, "bullet-lines",
        "maximum share of lines that begin with a bullet", PAPER,
    ),
    Threshold(
        "max_ellipsis_lines", 0.3, "ellipsis-lines",
        "maximum share of lines that end with an ellipsis", PAPER,
    ),
    Threshold(
        "min_alphabetic_words", 0.8, "few-alphabetic-words",
        "minimum share of words with a letter", PAPER,
    ),
    Threshold(
        "min_stop_words", 2, "few-stop-words", "minimum number of different stop words", PAPER
    ),
)  # fmt: skip

PROFILES = (
    Profile(
        family="gopher",
        variant="paper",
        alias=True,
        metrics=METRICS,
        thresholds=THRESHOLDS,
        measure_batch=_measure_paper,
        words=SPACES,
    ),
    Profile(
        family="gopher",
        variant="datatrove",
        metrics=METRICS,
        thresholds=THRESHOLDS,
        measure_batch=_measure_datatrove,
        words=DATATROVE,
        languages=frozenset({ENGLISH}),
    ),
)
