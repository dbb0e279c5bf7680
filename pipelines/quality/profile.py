"""A profile: metrics of a text, their thresholds, and the reason that each threshold gives.

A threshold is named after its metric: `min_words` drops a text whose metric `words` is smaller, and
`max_words` drops a text whose metric is larger. A threshold without a reason decides how the text
is read (which lines are kept, how long a short line may be); the effect of a different value cannot
be computed from the metrics.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.quality.batch import Column, MeasuredText, TextBatch
from pipelines.quality.words import CHINESE, UNSPACED

Bounds = Mapping[str, float]
"""The value of each threshold of a profile, by name; NaN if the threshold is off."""

Measure = Callable[[MeasuredText, Bounds], tuple[MeasuredText, tuple[float, ...]]]
"""Maps a text to the text that is passed on (the same, or with fewer lines) and the metrics."""

BatchMeasure = Callable[[TextBatch, Bounds], tuple[TextBatch, Sequence[Column]]]
"""Maps texts to the texts that are passed on and a column for each metric."""

BELOW, ABOVE = "<", ">"
"""Comparisons: a text is dropped if its metric is below, or above, the bound."""

NAN = math.nan


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number of a profile that users can set."""

    name: str
    """The name, such as "min_words"."""
    default: float
    """The published value; NaN if the threshold is off by default."""
    rule: str
    """The end of the reason, after the profile's name; "" if the threshold is not a rule."""
    meaning: str = ""
    source: str = ""
    """The publication that the default comes from."""

    @property
    def exact(self) -> bool:
        """Whether the metrics suffice to compute the verdicts under a different value."""
        return bool(self.rule)

    @property
    def metric(self) -> str:
        """The name of the metric, without the profile."""
        return self.name.split("_", 1)[1]

    @property
    def comparison(self) -> str:
        """BELOW for names with min_, ABOVE for names with max_."""
        return BELOW if self.name.startswith("min_") else ABOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Drops a text whose metric is below, or above, a bound; a bound of NaN drops nothing."""

    profile: str
    metric: str
    """The column of the metric, such as "gopher.words"."""
    comparison: str
    bound: float
    reason: str
    threshold: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named set of metrics and thresholds."""

    family: str
    variant: str = ""
    """The origin, such as "paper" or "datatrove", if the family has several variants."""
    alias: bool = False
    """Whether the bare name of the family means this variant."""
    metrics: tuple[str, ...]
    """The names of the metrics, in the order of the measured columns."""
    thresholds: tuple[Threshold, ...]
    """The thresholds, in the order in which their rules are applied."""
    measure: Measure | None = None
    """Measures one text; only custom profiles have this function."""
    measure_batch: BatchMeasure | None = None
    """Measures a batch of texts; for custom profiles it calls `measure`."""
    words: str = ""
    """The kind of words that are counted: "spaces" or "datatrove"; "" if none are counted."""
    languages: frozenset[str] | None = None
    """The supported languages; None means all languages whose words can be found."""
    module: str = ""
    """The module of a custom profile; "" otherwise."""

    @property
    def name(self) -> str:
        """The full name, such as "gopher@paper"."""
        return f"{self.family}@{self.variant}" if self.variant else self.family

    @property
    def short(self) -> str:
        """The family's name for the default variant, else the full name; begins column names."""
        return self.family if self.alias else self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the profile's metric columns."""
        return tuple(f"{self.short}.{metric}" for metric in self.metrics)

    @property
    def defaults(self) -> dict[str, float]:
        """The published value of each threshold."""
        return {threshold.name: threshold.default for threshold in self.thresholds}

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that the profile may give, in the order of its rules."""
        rules = (threshold.rule for threshold in self.thresholds if threshold.rule)
        return tuple(f"{self.family}-{rule}" for rule in rules)

    def supports(self, language: str, *, split: bool = False) -> bool:
        """Return whether the profile can judge texts of a language.

        Args:
            language: A label of lid.176.
            split: Whether a custom splitter finds the words of this language.
        """
        if self.languages is not None:
            return language in self.languages
        return split or not (self.words and language in UNSPACED - CHINESE)

    def rules(self, bounds: Bounds) -> tuple[Rule, ...]:
        """Return the rules of the profile with these bounds, in order of application."""
        return tuple(
            Rule(
                profile=self.name,
                metric=f"{self.short}.{threshold.metric}",
                comparison=threshold.comparison,
                bound=bounds[threshold.name],
                reason=f"{self.family}-{threshold.rule}",
                threshold=threshold.name,
            )
            for threshold in self.thresholds
            if threshold.rule
        )
