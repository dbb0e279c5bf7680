"""Rules for Chinese: FineWeb-2's filters for Mandarin, and those of Chinese web corpora.

A WuDao document is one line, where rules about lines say nothing. So in `fineweb2-zh` and
`chinese-web` a text of a single line is read by sentences: units that end with 。！？…；take the
place of lines. Texts of two lines or more are read by lines, as published. `fineweb2-zh@datatrove`
always reads lines.
"""

import re
from collections import Counter
from dataclasses import replace

from pipelines.quality import gopher, repetition
from pipelines.quality.fineweb import content_lines, punctuated, repeated_chars
from pipelines.quality.profile import Bounds, Profile, Threshold
from pipelines.quality.punctuation import chinese_units, ended, single_line
from pipelines.quality.repetition import duplicates, share
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
_GRAM = 13


def _measure_lines(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    whole = text.text
    parts = _LINES.split(whole)
    lines = content_lines(whole)
    return text, _fineweb2(
        text,
        dup_line=share(duplicates(parts)[0], len(parts)),
        punctuated_lines=punctuated(lines),
        dup_line_chars=repeated_chars(lines, whole),
    )


def _measure_units(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    if not single_line(text.text):
        return _measure_lines(text, bounds)
    units = chinese_units(text.text)
    return text, _fineweb2(
        text,
        dup_line=share(duplicates(units)[0], len(units)),
        punctuated_lines=share(sum(map(ended, units)), len(units)),
        dup_line_chars=repeated_chars(units, text.text),
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
        share(text.text.count("\n"), len(words)),
        *gopher.datatrove_metrics(text, gopher.CHINESE_STOP_WORDS),
    )


def _measure_web(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    whole = text.text
    units = chinese_units(whole) if single_line(whole) else whole.split("\n")
    han = sum(map(len, _HAN.findall(whole)))
    content = han + len(_LATIN_WORD.findall(whole))
    return text, (
        len(whole),
        share(len(whole), len(units)),
        share(han, len(whole)),
        share(whole.count("\n"), content),
        share(len(_NUMBER.findall(whole)), content),
        _repeated_grams("".join(whole.lower().split())),
    )


def _repeated_grams(letters: str) -> float:
    """Return the share of the runs of _GRAM characters that stand in a text more than once."""
    grams = [letters[start : start + _GRAM] for start in range(len(letters) - _GRAM + 1)]
    if len(set(grams)) == len(grams):
        return 0.0
    repeated = sum(count for count in Counter(grams).values() if count > 1)
    return repeated / len(grams)


def _fineweb2_thresholds() -> tuple[Threshold, ...]:
    own = {"min_word_length": 1, "max_word_length": 5, "min_alphabetic_words": 0.735}
    of_gopher = (
        replace(each, default=own[each.name], source=FINEWEB2)
        if each.name in own
        else replace(each, source=FINEWEB2_PIPELINE)
        for each in gopher.THRESHOLDS
    )
    ngrams = (0.256, 0.201, 0.171, 0.198, 0.182, 0.167, 0.154, 0.14, 0.127)
    return (
        Threshold(
            name="max_dup_line",
            default=0.287,
            rule="duplicate-lines",
            meaning="most lines seen before, as a share",
            source=FINEWEB2,
        ),
        *repetition.ngram_thresholds(ngrams, FINEWEB2),
        Threshold(
            name="min_punctuated_lines",
            default=0.106,
            rule="few-punctuated-lines",
            meaning="fewest lines that end a sentence, as a share",
            source=FINEWEB2,
        ),
        Threshold(
            name="max_dup_line_chars",
            default=0.1,
            rule="duplicate-line-chars",
            meaning="most characters in lines seen before, as a share",
            source=FINEWEB2_PIPELINE,
        ),
        Threshold(
            name="max_newlines",
            default=0.178,
            rule="newlines",
            meaning="most line breaks per word",
            source=FINEWEB2,
        ),
        *of_gopher,
    )


_WEB_THRESHOLDS = (
    Threshold(
        name="min_chars",
        default=201,
        rule="few-chars",
        meaning="least number of characters",
        source=CHINESE_WEB_TEXT,
    ),
    Threshold(
        name="min_line_chars",
        default=10,
        rule="short-lines",
        meaning="least mean length of lines, in characters",
        source=CHINESE_WEB_TEXT,
    ),
    Threshold(
        name="min_han",
        default=0.3,
        rule="few-han",
        meaning="fewest Han characters, as a share",
        source=CHINESE_WEB_TEXT,
    ),
    Threshold(
        name="max_newlines",
        default=0.25,
        rule="newlines",
        meaning="most line breaks per Han character or Latin word",
        source=FLAG_DATA,
    ),
    Threshold(
        name="max_numbers",
        default=0.5,
        rule="numbers",
        meaning="most numbers per Han character or Latin word",
        source=FLAG_DATA,
    ),
    Threshold(
        name="max_repeated_13grams",
        default=0.5,
        rule="repeated-13grams",
        meaning="most 13-grams of characters that stand more than once, as a share",
        source=CHINESE_WEB_TEXT,
    ),
)

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
