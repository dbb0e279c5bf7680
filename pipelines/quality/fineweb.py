"""FineWeb's own rules (Penedo et al. 2024, arXiv 2406.17557, and datatrove's filter of the name).

The paper tells of a share of 0.1 of characters in duplicated lines; the code that made the data
(datatrove 0.10.1, FineWebQualityFilter) uses 0.01. Lines here are those that are not blank.
"""

from collections.abc import Sequence

from pipelines.quality.profile import Bounds, Measure, Profile, Threshold
from pipelines.quality.punctuation import TERMINAL
from pipelines.quality.repetition import duplicates, share
from pipelines.quality.words import CHINESE, DATATROVE, ENGLISH, SPACES, Text

PAPER = "FineWeb (arXiv 2406.17557)"
CODE = "datatrove 0.10.1, FineWebQualityFilter"
METRICS = ("punctuated_lines", "short_lines", "dup_line_chars", "newlines")


def content_lines(text: str) -> list[str]:
    """Return the lines of a text that are not blank, as they are."""
    return [line for line in text.split("\n") if line and not line.isspace()]


def punctuated(lines: Sequence[str]) -> float:
    """Return the share of lines whose last character ends a sentence."""
    return share(sum(line[-1] in TERMINAL for line in lines), len(lines))


def repeated_chars(lines: Sequence[str], text: str) -> float:
    """Return the characters of lines seen before, as a share of all but line breaks."""
    return share(duplicates(lines)[1], len(text) - text.count("\n"))


def _measure(kind: str) -> Measure:
    def measure(text: Text, bounds: Bounds) -> tuple[Text, tuple[float, ...]]:
        whole = text.text
        lines = content_lines(whole)
        most = bounds["short_line_chars"]
        return text, (
            punctuated(lines),
            share(sum(len(line) <= most for line in lines), len(lines)),
            repeated_chars(lines, whole),
            share(whole.count("\n"), len(text.words(kind))),
        )

    return measure


def _thresholds(dup_line_chars: float, source: str) -> tuple[Threshold, ...]:
    return (
        Threshold(
            name="short_line_chars",
            default=30,
            meaning="a line of at most so many characters is short",
            source=source,
        ),
        Threshold(
            name="min_punctuated_lines",
            default=0.12,
            rule="few-punctuated-lines",
            meaning="fewest lines that end a sentence, as a share",
            source=source,
        ),
        Threshold(
            name="max_short_lines",
            default=0.67,
            rule="short-lines",
            meaning="most short lines, as a share",
            source=source,
        ),
        Threshold(
            name="max_dup_line_chars",
            default=dup_line_chars,
            rule="duplicate-line-chars",
            meaning="most characters in lines seen before, as a share",
            source=source,
        ),
        Threshold(
            name="max_newlines",
            default=0.3,
            rule="newlines",
            meaning="most line breaks per word",
            source=source,
        ),
    )


PROFILES = (
    Profile(
        family="fineweb",
        variant="paper",
        alias=True,
        about="FineWeb's own rules as the paper gives them; words are those between spaces.",
        metrics=METRICS,
        thresholds=_thresholds(0.1, PAPER),
        measure=_measure(SPACES),
        words=SPACES,
    ),
    Profile(
        family="fineweb",
        variant="code",
        about="FineWeb's own rules as datatrove's FineWebQualityFilter applies them.",
        metrics=METRICS,
        thresholds=_thresholds(0.01, CODE),
        measure=_measure(DATATROVE),
        words=DATATROVE,
        languages=CHINESE | {ENGLISH},
    ),
)
