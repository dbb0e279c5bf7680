"""Gopher's quality rules for English (Rae et al. 2021, arXiv 2112.11446, appendix A1.1).

             @paper                             @datatrove (0.10.1)
words        runs of non-spaces (jieba for zh)  spaCy's; number and length are of those that are
                                                not punctuation alone
bullets      • - *                              • -
stop words   distinct, in any case              distinct, as written
"""

from collections.abc import Callable, Collection, Sequence
from itertools import product

from pipelines.quality.profile import NAN, Bounds, Profile, Threshold
from pipelines.quality.punctuation import PUNCTUATION
from pipelines.quality.repetition import ratio
from pipelines.quality.words import CHINESE, DATATROVE, ENGLISH, SPACES, MeasuredText

PAPER = "Gopher (arXiv 2112.11446), A1.1"

ENGLISH_STOP_WORDS = frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})

_STOP_FORMS = frozenset(
    "".join(letters)
    for word in ENGLISH_STOP_WORDS
    for letters in product(*zip(word, word.upper(), strict=True))
)

CHINESE_STOP_WORDS = frozenset("的年在月是和日了於·為有被人中为他與後也而由")
"""FineWeb-2, configs/cmn_Hani.yml (commit 05e6729): each of one character."""

METRICS = (
    "words", "word_length", "hashes", "ellipses", "bullet_lines", "ellipsis_lines",
    "alphabetic_words", "stop_words",
)  # fmt: skip

_ELLIPSES = ("...", "…")


def datatrove_metrics(text: MeasuredText, stop_words: Collection[str]) -> tuple[float, ...]:
    """Return the metrics (METRICS) as datatrove's GopherQualityFilter computes them."""
    words = text.words(DATATROVE)
    plain = [word for word in words if word[0].isalpha() or word.strip(PUNCTUATION)]
    return (
        len(plain),
        ratio(sum(map(len, plain)), len(plain)),
        *_symbols(text.text, len(words)),
        *_line_shares(text.text, bullets=("•", "-")),
        ratio(_num_alphabetic(words), len(words)),
        len(set(words).intersection(stop_words)),
    )


def _measure_datatrove(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    return text, datatrove_metrics(text, ENGLISH_STOP_WORDS)


def _measure_paper(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    words = text.words(SPACES)
    return text, (
        len(words),
        ratio(sum(map(len, words)), len(words)),
        *_symbols(text.text, len(words)),
        *_line_shares(text.text, bullets=("•", "-", "*")),
        ratio(_num_alphabetic(words), len(words)),
        _num_stop_words(words, text.language),
    )


def _symbols(text: str, num_words: int) -> tuple[float, float]:
    """Return hash signs and ellipses per word."""
    ellipses = sum(map(text.count, _ELLIPSES))
    return ratio(text.count("#"), num_words), ratio(ellipses, num_words)


def _line_shares(text: str, *, bullets: tuple[str, ...]) -> tuple[float, float]:
    """Return the shares of lines that begin with a bullet and that end with an ellipsis."""
    lines = text.splitlines()
    begun = _num_lines(lines, bullets, text, lambda line: line.lstrip().startswith(bullets))
    ended = _num_lines(lines, _ELLIPSES, text, lambda line: line.rstrip().endswith(_ELLIPSES))
    return ratio(begun, len(lines)), ratio(ended, len(lines))


def _num_lines(
    lines: Sequence[str], marks: tuple[str, ...], text: str, test: Callable[[str], bool]
) -> int:
    # Most texts have no such mark at all, which spares looking at their lines.
    return sum(map(test, lines)) if any(mark in text for mark in marks) else 0


def _num_alphabetic(words: Sequence[str]) -> int:
    """Return how many words hold a letter; Chinese characters are letters."""
    others = [word for word in words if not word[0].isalpha()]
    return len(words) - sum(not any(map(str.isalpha, word)) for word in others)


def _num_stop_words(words: Sequence[str], language: str) -> float:
    """Return how many different stop words occur; NaN in a language without a list."""
    if language in CHINESE:
        return len(CHINESE_STOP_WORDS.intersection(words))
    if language != ENGLISH:
        return NAN
    return len({form.lower() for form in _STOP_FORMS.intersection(words)})


THRESHOLDS = (
    Threshold("min_words", 50, "few-words", "least number of words", PAPER),
    Threshold("max_words", 100_000, "many-words", "most words", PAPER),
    Threshold(
        "min_word_length", 3, "short-words", "least mean length of words, in characters", PAPER
    ),
    Threshold(
        "max_word_length", 10, "long-words", "greatest mean length of words, in characters", PAPER
    ),
    Threshold("max_hashes", 0.1, "hashes", "most # per word", PAPER),
    Threshold("max_ellipses", 0.1, "ellipses", "most ellipses (... or …) per word", PAPER),
    Threshold(
        "max_bullet_lines", 0.9, "bullet-lines", "most lines begun by a bullet, a share", PAPER
    ),
    Threshold(
        "max_ellipsis_lines", 0.3, "ellipsis-lines", "most lines ended by an ellipsis, a share",
        PAPER,
    ),
    Threshold(
        "min_alphabetic_words", 0.8, "few-alphabetic-words", "fewest words with a letter, a share",
        PAPER,
    ),
    Threshold("min_stop_words", 2, "few-stop-words", "fewest different stop words", PAPER),
)  # fmt: skip

PROFILES = (
    Profile(
        family="gopher",
        variant="paper",
        alias=True,
        about="Gopher's quality rules; words are those between spaces, or jieba's.",
        metrics=METRICS,
        thresholds=THRESHOLDS,
        measure=_measure_paper,
        words=SPACES,
    ),
    Profile(
        family="gopher",
        variant="datatrove",
        about="Gopher's quality rules as datatrove's GopherQualityFilter applies them.",
        metrics=METRICS,
        thresholds=THRESHOLDS,
        measure=_measure_datatrove,
        words=DATATROVE,
        languages=frozenset({ENGLISH}),
    ),
)
