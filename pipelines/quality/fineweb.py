"""FineWeb's own rules (Penedo et al. 2024, arXiv 2406.17557; datatrove's FineWebQualityFilter).

                       @paper (section 3.6)        @code (datatrove 0.10.1, what made the data)
short lines            shorter than 30 characters  30 characters or less
dup_line_chars         0.1                         0.01
newlines               no rule                     0.3
words                  between spaces; jieba's     spaCy's; jieba's

Only lines that are not blank count. The paper drops a text at its bound; the code, and both
variants here, keep it.
"""

from collections.abc import Sequence

from pipelines.quality.profile import NAN, Bounds, Measure, Profile, Threshold
from pipelines.quality.punctuation import TERMINAL
from pipelines.quality.repetition import count_repeats, ratio
from pipelines.quality.words import CHINESE, DATATROVE, ENGLISH, SPACES, MeasuredText

PAPER = "FineWeb (arXiv 2406.17557), section 3.6"
CODE = "datatrove 0.10.1, FineWebQualityFilter"
METRICS = ("punctuated_lines", "short_lines", "dup_line_chars", "newlines")


def content_lines(text: str) -> list[str]:
    """Return the lines of a text that are not blank, unchanged."""
    return [line for line in text.split("\n") if line and not line.isspace()]


def punctuated_share(lines: Sequence[str]) -> float:
    """Return the share of lines whose last character ends a sentence."""
    return ratio(sum(line[-1] in TERMINAL for line in lines), len(lines))


def repeated_chars_share(lines: Sequence[str], text: str) -> float:
    """Return the characters in lines seen before, as a share of all but line breaks."""
    return ratio(count_repeats(lines)[1], len(text) - text.count("\n"))


def _measure(kind: str) -> Measure:
    def measure(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
        whole = text.text
        lines = content_lines(whole)
        most = bounds["short_line_chars"]
        return text, (
            punctuated_share(lines),
            ratio(sum(len(line) <= most for line in lines), len(lines)),
            repeated_chars_share(lines, whole),
            ratio(whole.count("\n"), len(text.words(kind))),
        )

    return measure


def _thresholds(
    source: str, *, short_line_chars: int, dup_line_chars: float, newlines: float
) -> tuple[Threshold, ...]:
    return (
        Threshold(
            "short_line_chars", short_line_chars, "",
            "lines of at most this many characters are short", source,
        ),
        Threshold(
            "min_punctuated_lines", 0.12, "few-punctuated-lines",
            "fewest lines that end a sentence, as a share", source,
        ),
        Threshold("max_short_lines", 0.67, "short-lines", "most short lines, as a share", source),
        Threshold(
            "max_dup_line_chars", dup_line_chars, "duplicate-line-chars",
            "most characters in lines seen before, as a share", source,
        ),
        Threshold("max_newlines", newlines, "newlines", "most line breaks per word", source),
    )  # fmt: skip


PROFILES = (
    Profile(
        family="fineweb",
        variant="paper",
        alias=True,
        about="FineWeb's own rules as the paper gives them; words are those between spaces.",
        metrics=METRICS,
        thresholds=_thresholds(PAPER, short_line_chars=29, dup_line_chars=0.1, newlines=NAN),
        measure=_measure(SPACES),
        words=SPACES,
    ),
    Profile(
        family="fineweb",
        variant="code",
        about="FineWeb's own rules as datatrove's FineWebQualityFilter applies them.",
        metrics=METRICS,
        thresholds=_thresholds(CODE, short_line_chars=30, dup_line_chars=0.01, newlines=0.3),
        measure=_measure(DATATROVE),
        words=DATATROVE,
        languages=CHINESE | {ENGLISH},
    ),
)
