"""Repetition: Gopher's rules about duplicated lines, paragraphs and n-grams of words.

Rae et al. 2021, "Scaling Language Models" (arXiv 2112.11446), table A1. The paper does not define a
duplicate, so the two variants differ:

             @paper                                      @datatrove (0.10.1)
lines        non-blank, white space around them ignored  separated by one or more line breaks
top n-gram   length x count, without the spaces          with the spaces; counts even if single
dup n-gram   words in any repeated n-gram, each once     repeats that do not overlap a counted one;
                                                         n-grams are equal if their letters are
shares of    characters of words (lines: of lines)       characters of the text
"""

from collections.abc import Sequence

import numpy as np

from pipelines.quality.batch import Column, TextBatch
from pipelines.quality.ngrams import DUP_N, TOP_N, chars_in_repeated, chars_seen_before
from pipelines.quality.profile import Bounds, Profile, Threshold
from pipelines.quality.spans import Floats, Places, Spans, ratio
from pipelines.quality.words import CHINESE, DATATROVE, ENGLISH, SPACES

TABLE_A1 = "Gopher (arXiv 2112.11446), table A1"
NGRAM_METRICS = (*(f"top_{n}gram" for n in TOP_N), *(f"dup_{n}gram" for n in DUP_N))


def datatrove_ngrams(words: Spans, num_chars: Places) -> Floats:
    """Return the n-gram shares (NGRAM_METRICS) as datatrove computes them.

    Args:
        words: The words of texts.
        num_chars: The number of characters of each text.
    """
    chars, counts = chars_in_repeated(words, most=TOP_N[-1])
    spaces = np.array(TOP_N)[:, np.newaxis] - 1
    tops = (chars[: len(TOP_N)] + spaces) * counts
    return ratio(np.concatenate((tops, chars_seen_before(words))), num_chars)


def paper_ngrams(words: Spans) -> Floats:
    """Return the n-gram shares (NGRAM_METRICS) of the characters in words.

    The share of a top n-gram that occurs only once is 0.
    """
    chars, counts = chars_in_repeated(words, most=DUP_N[-1])
    chars[: len(TOP_N)] *= counts * (counts > 1)
    return ratio(chars, words.sums(words.lengths))


def _measure_datatrove(batch: TextBatch, _: Bounds) -> tuple[TextBatch, tuple[Column, ...]]:
    texts = batch.texts
    shares: list[Floats] = []
    for parts in (texts.stripped().parts(feeds=2), texts.parts(feeds=1)):
        shares += _shares_of_repeats(parts, texts.lengths)
    return batch, (*shares, *datatrove_ngrams(batch.words(DATATROVE), texts.lengths))


def _measure_paper(batch: TextBatch, _: Bounds) -> tuple[TextBatch, tuple[Column, ...]]:
    shares: list[Floats] = []
    for feeds in (2, 1):
        parts = batch.texts.parts(feeds=feeds).stripped()
        parts = parts[parts.lengths > 0]
        shares += _shares_of_repeats(parts, parts.sums(parts.lengths))
    return batch, (*shares, *paper_ngrams(batch.words(SPACES)))


def _shares_of_repeats(parts: Spans, num_chars: Places) -> tuple[Floats, Floats]:
    """Return the share of repeated parts, and the share of the characters in them."""
    again = parts.repeating()
    chars = parts.sums(parts.lengths * again)
    return ratio(parts.sums(again), parts.counts), ratio(chars, num_chars)


def ngram_thresholds(bounds: Sequence[float], source: str) -> tuple[Threshold, ...]:
    """Return the thresholds of the nine n-gram shares, given their bounds in the same order."""
    kinds = [("top", n, "top", f"the most common {n}-gram") for n in TOP_N]
    kinds += [("dup", n, "duplicate", f"repeated {n}-grams") for n in DUP_N]
    return tuple(
        Threshold(
            f"max_{metric}_{n}gram", bound, f"{rule}-{n}gram",
            f"maximum share of characters in {where}", source,
        )
        for (metric, n, rule, where), bound in zip(kinds, bounds, strict=True)
    )  # fmt: skip


_THRESHOLDS = (
    Threshold(
        "max_dup_paragraph", 0.3, "duplicate-paragraphs",
        "maximum share of repeated paragraphs", TABLE_A1,
    ),
    Threshold(
        "max_dup_paragraph_chars", 0.2, "duplicate-paragraph-chars",
        "maximum share of characters in repeated paragraphs", TABLE_A1,
    ),
    Threshold(
        "max_dup_line", 0.3, "duplicate-lines", "maximum share of repeated lines", TABLE_A1
    ),
    Threshold(
        "max_dup_line_chars", 0.2, "duplicate-line-chars",
        "maximum share of characters in repeated lines", TABLE_A1,
    ),
    *ngram_thresholds((0.2, 0.18, 0.16, 0.15, 0.14, 0.13, 0.12, 0.11, 0.1), TABLE_A1),
)  # fmt: skip

_METRICS = ("dup_paragraph", "dup_paragraph_chars", "dup_line", "dup_line_chars", *NGRAM_METRICS)

PROFILES = (
    Profile(
        family="gopher-repetition",
        variant="paper",
        alias=True,
        metrics=_METRICS,
        thresholds=_THRESHOLDS,
        measure_batch=_measure_paper,
        words=SPACES,
    ),
    Profile(
        family="gopher-repetition",
        variant="datatrove",
        metrics=_METRICS,
        thresholds=_THRESHOLDS,
        measure_batch=_measure_datatrove,
        words=DATATROVE,
        languages=CHINESE | {ENGLISH},
    ),
)
