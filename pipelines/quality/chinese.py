"""Rules for Chinese: FineWeb-2's filters for Mandarin, and those of Chinese web corpora.

A WuDao document is a single line, on which rules about lines have no bearing. So `fineweb2-zh` and
`chinese-web` read a text of one line by sentences: units that end with 。！？…；take the place of
lines. Texts of two lines or more are read by lines, as published. `fineweb2-zh@datatrove` always
reads lines.
"""

import re
from collections import Counter
from dataclasses import replace

from pipelines.quality import gopher, repetition
from pipelines.quality.fineweb import content_lines, punctuated_share, repeated_chars_share
from pipelines.quality.profile import Bounds, Profile, Threshold
from pipelines.quality.punctuation import chinese_units, ends_sentence, is_single_line
from pipelines.quality.repetition import count_repeats, ratio
from pipelines.quality.words import CHINESE, DATATROVE, MeasuredText

FINEWEB2 = "FineWeb-2, configs/cmn_Hani.yml (05e6729)"
FINEWEB2_PIPELINE = "FineWeb-2, fineweb-2-pipeline.py (7ee60b3)"
CHINESE_WEB_TEXT = "ChineseWebText, preprocess.py (de83375)"
FLAG_DATA = "FlagData, flagdata/cleaner/text_cleaner.py (84a3d7e)"

_FINEWEB2_METRICS = (
    "dup_line", *repetition.NGRAM_METRICS, "punctuated_lines", "dup_line_chars", "newlines",
    *gopher.METRICS,
)  # fmt: skip

_LINES = re.compile(r"\n+")
_HAN = re.compile(r"[\u4e00-\u9fff]+")
_LATIN_WORD = re.compile(r"[A-Za-z]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
GRAM = 13
"""The characters of a run, in the metric repeated_13grams."""


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


def _measure_web(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    whole = text.text
    units = chinese_units(whole) if is_single_line(whole) else whole.split("\n")
    han = sum(map(len, _HAN.findall(whole)))
    content = han + len(_LATIN_WORD.findall(whole))
    return text, (
        len(whole),
        ratio(len(whole), len(units)),
        ratio(han, len(whole)),
        ratio(whole.count("\n"), content),
        ratio(len(_NUMBER.findall(whole)), content),
        _repeated_grams("".join(whole.lower().split())),
    )


def _repeated_grams(letters: str) -> float:
    """Return the share of the runs of GRAM characters that occur more than once in a text."""
    grams = [letters[start : start + GRAM] for start in range(len(letters) - GRAM + 1)]
    if len(set(grams)) == len(grams):
        return 0.0
    repeated = sum(count for count in Counter(grams).values() if count > 1)
    return repeated / len(grams)


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


_WEB_THRESHOLDS = (
    Threshold("min_chars", 201, "few-chars", "least number of characters", CHINESE_WEB_TEXT),
    Threshold(
        "min_line_chars", 10, "short-lines",
        "least mean length of lines, in characters", CHINESE_WEB_TEXT,
    ),
    Threshold("min_han", 0.3, "few-han", "fewest Han characters, as a share", CHINESE_WEB_TEXT),
    Threshold(
        "max_newlines", 0.25, "newlines",
        "most line breaks per Han character or Latin word", FLAG_DATA,
    ),
    Threshold(
        "max_numbers", 0.5, "numbers", "most numbers per Han character or Latin word", FLAG_DATA
    ),
    Threshold(
        "max_repeated_13grams", 0.5, "repeated-13grams",
        "most 13-grams of characters that occur more than once, as a share", CHINESE_WEB_TEXT,
    ),
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
    Profile(
        family="chinese-web",
        alias=True,
        about="Length, script and repetition as ChineseWebText and FlagData check them.",
        metrics=("chars", "line_chars", "han", "newlines", "numbers", "repeated_13grams"),
        thresholds=_WEB_THRESHOLDS,
        measure=_measure_web,
        languages=CHINESE,
    ),
)
