"""A profile: metrics of a text, and bounds on them, each with the reason it gives.

A threshold is named after its metric: `min_words` drops a text whose metric `words` is smaller,
`max_words` one whose metric is larger. A threshold without a reason decides how the text is read
(which lines stay, how long a short line is); with another value of it, the verdict does not follow
from the metrics.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.quality.batch import Column, MeasuredText, TextBatch
from pipelines.quality.words import CHINESE, UNSPACED

Bounds = Mapping[str, float]
"""The value of each threshold of a profile, by name; NaN where it is off."""

Measure = Callable[[MeasuredText, Bounds], tuple[MeasuredText, tuple[float, ...]]]
"""From a text to the text passed on (the same, or one with fewer lines) and its metrics."""

BatchMeasure = Callable[[TextBatch, Bounds], tuple[TextBatch, Sequence[Column]]]
"""From texts to those passed on and a column for each metric."""

BELOW, ABOVE = "<", ">"
"""Comparisons: a text is dropped when its metric is below, or above, the bound."""

NAN = math.nan


@dataclass(frozen=True, slots=True)
class Threshold:
    """One number of a profile that can be set."""

    name: str
    """Such as "min_words"."""
    default: float
    """NaN: off until somebody sets it."""
    rule: str
    """The part of the reason after the profile's name; "" if the threshold is not a rule."""
    meaning: str = ""
    source: str = ""
    """Where the default comes from."""

    @property
    def exact(self) -> bool:
        """Whether verdicts under another value of it follow from the metrics alone."""
        return bool(self.rule)

    @property
    def metric(self) -> str:
        """The metric that the rule looks at, without the profile."""
        return self.name.split("_", 1)[1]

    @property
    def comparison(self) -> str:
        """BELOW for min_…, ABOVE for max_…."""
        return BELOW if self.name.startswith("min_") else ABOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A text is dropped if its metric is `comparison` the bound; a bound of NaN drops nothing."""

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
    """Where it comes from, if the family has several: "paper", "datatrove" …"""
    alias: bool = False
    """Whether the bare name of the family means this variant."""
    about: str = ""
    metrics: tuple[str, ...]
    """Names of the metrics, in the order in which they are measured."""
    thresholds: tuple[Threshold, ...]
    """In the order in which their rules are applied."""
    measure: Measure | None = None
    """Measures the metrics of a user's profile in one text."""
    measure_batch: BatchMeasure | None = None
    """Measures a batch of texts; calls `measure` where there is one."""
    words: str = ""
    """Which words it counts: "spaces", "datatrove", or none."""
    languages: frozenset[str] | None = None
    """The languages it can judge; None: all in which its words can be found."""
    module: str = ""
    """The module of a custom profile."""

    @property
    def name(self) -> str:
        """The full name, such as "gopher@paper"."""
        return f"{self.family}@{self.variant}" if self.variant else self.family

    @property
    def short(self) -> str:
        """The bare name if that means this variant, else the full one; columns begin with it."""
        return self.family if self.alias else self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its metric columns."""
        return tuple(f"{self.short}.{metric}" for metric in self.metrics)

    @property
    def defaults(self) -> dict[str, float]:
        """The published value of each threshold."""
        return {threshold.name: threshold.default for threshold in self.thresholds}

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that it may give, in the order of the rules."""
        rules = (threshold.rule for threshold in self.thresholds if threshold.rule)
        return tuple(f"{self.family}-{rule}" for rule in rules)

    def supports(self, language: str, *, split: bool = False) -> bool:
        """Return whether it can judge texts of a language.

        Args:
            language: A label of lid.176.
            split: A custom splitter finds the words of this language.
        """
        if self.languages is not None:
            return language in self.languages
        return split or not (self.words and language in UNSPACED - CHINESE)

    def rules(self, bounds: Bounds) -> tuple[Rule, ...]:
        """Return its rules with these bounds, in order of application."""
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
