"""Rules for Chinese: FineWeb-2's filters for Mandarin.

A WuDao document is a single line, on which rules about lines have no bearing. So `fineweb2-zh`
reads a text of one line by sentences: units that end with 。！？…；take the place of lines. Texts
of two lines or more are read by lines, as published. `fineweb2-zh@datatrove` always reads lines.
"""

import re
from dataclasses import replace

from pipelines.quality import gopher, repetition
from pipelines.quality.fineweb import content_lines, punctuated_share, repeated_chars_share
from pipelines.quality.profile import Bounds, Profile, Threshold
from pipelines.quality.punctuation import chinese_units, ends_sentence, is_single_line
from pipelines.quality.repetition import count_repeats, ratio
from pipelines.quality.words import CHINESE, DATATROVE, MeasuredText

FINEWEB2 = "FineWeb-2, configs/cmn_Hani.yml (05e6729)"
FINEWEB2_PIPELINE = "FineWeb-2, fineweb-2-pipeline.py (7ee60b3)"

_FINEWEB2_METRICS = (
    "dup_line", *repetition.NGRAM_METRICS, "punctuated_lines", "dup_line_chars", "newlines",
    *gopher.METRICS,
)  # fmt: skip

_LINES = re.compile(r"\n+")


def _measure_lines(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    whole = text.text
    parts = _LINES.split(whole)
    lines = content_lines(whole)
    return text, _fineweb2(
        text,
        dup_line=ratio(count_repeats(parts)[0], len(parts)),
        punctuated_lines=punctuated_share(lines),
        dup_line_chars=repeated_chars_share(lines, whole),
    )


def _measure_units(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    if not is_single_line(text.text):
        return _measure_lines(text, bounds)
    units = chinese_units(text.text)
    return text, _fineweb2(
        text,
        dup_line=ratio(count_repeats(units)[0], len(units)),
        punctuated_lines=ratio(sum(map(ends_sentence, units)), len(units)),
        dup_line_chars=repeated_chars_share(units, text.text),
    )


def _fineweb2(
    text: MeasuredText, *, dup_line: float, punctuated_lines: float, dup_line_chars: float
) -> tuple[float, ...]:
    words = text.words(DATATROVE)
    return (
        dup_line,
        *repetition.datatrove_ngrams(words, len(text.text)),
        punctuated_lines,
        dup_line_chars,
        ratio(text.text.count("\n"), len(words)),
        *gopher.datatrove_metrics(text, gopher.CHINESE_STOP_WORDS),
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
            "max_dup_line", 0.287, "duplicate-lines", "most lines seen before, as a share", FINEWEB2
        ),
        *repetition.ngram_thresholds(ngrams, FINEWEB2),
        Threshold(
            "min_punctuated_lines", 0.106, "few-punctuated-lines",
            "fewest lines that end a sentence, as a share", FINEWEB2,
        ),
        Threshold(
            "max_dup_line_chars", 0.1, "duplicate-line-chars",
            "most characters in lines seen before, as a share", FINEWEB2_PIPELINE,
        ),
        Threshold("max_newlines", 0.178, "newlines", "most line breaks per word", FINEWEB2),
        *of_gopher,
    )  # fmt: skip


PROFILES = (
    Profile(
        family="fineweb2-zh",
        variant="sentences",
        alias=True,
        about="FineWeb-2's filters for Mandarin; sentences for lines where there is one line.",
        metrics=_FINEWEB2_METRICS,
        thresholds=_fineweb2_thresholds(),
        measure=_measure_units,
        words=DATATROVE,
        languages=CHINESE,
    ),
    Profile(
        family="fineweb2-zh",
        variant="datatrove",
        about="FineWeb-2's filters for Mandarin as datatrove applies them.",
        metrics=_FINEWEB2_METRICS,
        thresholds=_fineweb2_thresholds(),
        measure=_measure_lines,
        words=DATATROVE,
        languages=CHINESE,
    ),
)
