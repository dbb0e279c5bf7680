"""Rules for Chinese: FineWeb-2's filters for Mandarin.

A WuDao document is a single line, so rules about lines say nothing about it. If a text has only
one line, `fineweb2-zh` applies these rules to its sentences, which end with 。！？…；. Texts of
two or more lines are read line by line, as published. `fineweb2-zh@datatrove` always reads lines.
"""

from dataclasses import replace

import numpy as np

from pipelines.quality import gopher, repetition
from pipelines.quality.batch import Column, TextBatch
from pipelines.quality.characters import CHINESE_AFTER_END, CHINESE_END, ENDING
from pipelines.quality.fineweb import content_lines
from pipelines.quality.profile import Bounds, Profile, Threshold
from pipelines.quality.spans import Places, Spans, ratio
from pipelines.quality.words import CHINESE, DATATROVE

FINEWEB2 = "FineWeb-2, configs/cmn_Hani.yml (05e6729)"
FINEWEB2_PIPELINE = "FineWeb-2, fineweb-2-pipeline.py (7ee60b3)"

_FINEWEB2_METRICS = (
    "dup_line", *repetition.NGRAM_METRICS, "punctuated_lines", "dup_line_chars", "newlines",
    *gopher.METRICS,
)  # fmt: skip


def _measure_lines(batch: TextBatch, _: Bounds) -> tuple[TextBatch, tuple[Column, ...]]:
    return batch, _fineweb2(batch, _counts_of_lines(batch.texts))


def _measure_units(batch: TextBatch, _: Bounds) -> tuple[TextBatch, tuple[Column, ...]]:
    lines, units = _counts_of_lines(batch.texts), _counts_of_units(batch.texts)
    is_single = batch.texts.stripped().count("\n") == 0
    counts = tuple(np.where(is_single, *both) for both in zip(units, lines, strict=True))
    return batch, _fineweb2(batch, counts)


_Counts = tuple[Places, ...]
"""The numbers, for each text, of repeated parts, parts, lines that end a sentence, lines, and
characters in repeated lines. A part or line is repeated if it equals an earlier one."""


def _counts_of_lines(texts: Spans) -> _Counts:
    parts, lines = texts.parts(feeds=1), content_lines(texts)
    return (
        parts.sums(parts.repeating()),
        parts.counts,
        lines.sums(lines.ending(ENDING)),
        lines.counts,
        lines.sums(lines.lengths * lines.repeating()),
    )


def _counts_of_units(texts: Spans) -> _Counts:
    """Return the counts with sentences, which include their end marks, instead of lines."""
    kinds = texts.characters.kinds
    marks = texts.runs(np.flatnonzero(kinds & CHINESE_END > 0))
    behind = replace(marks, starts=marks.ends, ends=np.repeat(texts.ends, marks.counts))
    borders = behind.stripped_before(CHINESE_AFTER_END).starts
    units = texts.between(replace(marks, starts=borders, ends=borders)).stripped()
    units = units[units.lengths > 0]
    again = units.repeating()
    ended = units.stripped(CHINESE_AFTER_END).ending(ENDING | CHINESE_END)
    return (
        units.sums(again),
        units.counts,
        units.sums(ended),
        units.counts,
        units.sums(units.lengths * again),
    )


def _fineweb2(batch: TextBatch, counts: _Counts) -> tuple[Column, ...]:
    repeated_parts, parts, ended_lines, lines, repeated_chars = counts
    texts, words = batch.texts, batch.words(DATATROVE)
    feeds = texts.count("\n")
    return (
        ratio(repeated_parts, parts),
        *repetition.datatrove_ngrams(words, texts.lengths),
        ratio(ended_lines, lines),
        ratio(repeated_chars, texts.lengths - feeds),
        ratio(feeds, words.counts),
        *gopher.datatrove_metrics(batch, gopher.CHINESE_STOP_WORDS),
    )


def _fineweb2_thresholds() -> tuple[Threshold, ...]:
    own = {"min_word_length": 1, "max_word_length": 5, "min_alphabetic_words": 0.735}
    of_gopher = (
        replace(threshold, default=own[threshold.name], source=FINEWEB2)
        if threshold.name in own
        else replace(threshold, source=FINEWEB2_PIPELINE)
        for threshold in gopher.THRESHOLDS
    )
    ngrams = (0.256, 0.201, 0.171, 0.198, 0.182, 0.167, 0.154, 0.14, 0.127)
    return (
        Threshold(
            "max_dup_line", 0.287, "duplicate-lines", "maximum share of repeated lines", FINEWEB2
        ),
        *repetition.ngram_thresholds(ngrams, FINEWEB2),
        Threshold(
            "min_punctuated_lines", 0.106, "few-punctuated-lines",
            "minimum share of lines that end a sentence", FINEWEB2,
        ),
        Threshold(
            "max_dup_line_chars", 0.1, "duplicate-line-chars",
            "maximum share of characters in repeated lines", FINEWEB2_PIPELINE,
        ),
        Threshold(
            "max_newlines", 0.178, "newlines", "maximum number of line breaks per word", FINEWEB2
        ),
        *of_gopher,
    )  # fmt: skip


PROFILES = (
    Profile(
        family="fineweb2-zh",
        variant="sentences",
        alias=True,
        metrics=_FINEWEB2_METRICS,
        thresholds=_fineweb2_thresholds(),
        measure_batch=_measure_units,
        words=DATATROVE,
        languages=CHINESE,
    ),
    Profile(
        family="fineweb2-zh",
        variant="datatrove",
        metrics=_FINEWEB2_METRICS,
        thresholds=_fineweb2_thresholds(),
        measure_batch=_measure_lines,
        words=DATATROVE,
        languages=CHINESE,
    ),
)
