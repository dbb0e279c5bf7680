"""FineWeb's own rules (Penedo et al. 2024, arXiv 2406.17557; datatrove's FineWebQualityFilter).

                       @paper (section 3.6)        @code (datatrove 0.10.1, which made the data)
short lines            shorter than 30 characters  30 characters or less
dup_line_chars         0.1                         0.01
newlines               no rule                     0.3
words                  between spaces; jieba's     spaCy's; jieba's

Blank lines are ignored. The paper drops a text whose metric equals the bound; the code, and both
variants here, keep it.
"""

from pipelines.quality.batch import Column, TextBatch
from pipelines.quality.characters import ENDING, SPACE
from pipelines.quality.profile import NAN, BatchMeasure, Bounds, Profile, Threshold
from pipelines.quality.spans import Spans, ratio
from pipelines.quality.words import CHINESE, DATATROVE, ENGLISH, SPACES

PAPER = "FineWeb (arXiv 2406.17557), section 3.6"
CODE = "datatrove 0.10.1, FineWebQualityFilter"
METRICS = ("punctuated_lines", "short_lines", "dup_line_chars", "newlines")


def content_lines(texts: Spans) -> Spans:
    """Return the non-blank lines of texts, including the white space at both ends of a line."""
    lines = texts.parts()
    return lines[lines.lacking(SPACE)]


def _measure(kind: str) -> BatchMeasure:
    def measure(batch: TextBatch, bounds: Bounds) -> tuple[TextBatch, tuple[Column, ...]]:
        lines, feeds = content_lines(batch.texts), batch.texts.count("\n")
        short = lines.lengths <= bounds["short_line_chars"]
        repeated = lines.sums(lines.lengths * lines.repeating())
        return batch, (
            ratio(lines.sums(lines.ending(ENDING)), lines.counts),
            ratio(lines.sums(short), lines.counts),
            ratio(repeated, batch.texts.lengths - feeds),
            ratio(feeds, batch.num_words(kind)),
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
            "minimum share of lines that end a sentence", source,
        ),
        Threshold("max_short_lines", 0.67, "short-lines", "maximum share of short lines", source),
        Threshold(
            "max_dup_line_chars", dup_line_chars, "duplicate-line-chars",
            "maximum share of characters in repeated lines", source,
        ),
        Threshold(
            "max_newlines", newlines, "newlines", "maximum number of line breaks per word", source
        ),
    )  # fmt: skip


PROFILES = (
    Profile(
        family="fineweb",
        variant="paper",
        alias=True,
        metrics=METRICS,
        thresholds=_thresholds(PAPER, short_line_chars=29, dup_line_chars=0.1, newlines=NAN),
        measure_batch=_measure(SPACES),
        words=SPACES,
    ),
    Profile(
        family="fineweb",
        variant="code",
        metrics=METRICS,
        thresholds=_thresholds(CODE, short_line_chars=30, dup_line_chars=0.01, newlines=0.3),
        measure_batch=_measure(DATATROVE),
        words=DATATROVE,
        languages=CHINESE | {ENGLISH},
    ),
)
