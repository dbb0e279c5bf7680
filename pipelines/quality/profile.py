"""What a profile is: metrics of a text, and bounds on them, each with the reason it gives.

A threshold is called after its metric: `min_words` drops a text whose metric `words` is smaller,
`max_words` one whose metric is larger. A threshold without a reason decides how the text is read
(which lines stay, how long a short line is); the verdict under another value of it cannot be had
from the metrics.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipelines.quality.words import CHINESE, UNSPACED, MeasuredText

Bounds = Mapping[str, float]
"""The value of each threshold of a profile, by name; NaN where it is off."""

Measure = Callable[[MeasuredText, Bounds], tuple[MeasuredText, tuple[float, ...]]]
"""From a text to the text handed on (the same, or one with fewer lines) and its metrics."""

BELOW, ABOVE = "<", ">"
"""Comparisons: a text is dropped when its metric is below, or above, the bound."""

NAN = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One number of a profile that can be set."""

    name: str
    """Such as "min_words"."""
    default: float
    """NaN: off until somebody sets it."""
    meaning: str
    source: str
    """Where the default comes from."""
    rule: str = ""
    """What stands behind the profile's name in the reason; "" where the threshold is no rule."""

    @property
    def exact(self) -> bool:
        """Whether verdicts under another value follow from the metrics alone."""
        return bool(self.rule)

    @property
    def metric(self) -> str:
        """The metric that a rule looks at, without the profile."""
        return self.name.split("_", 1)[1]

    @property
    def comparison(self) -> str:
        """BELOW for min_…, ABOVE for max_…."""
        return BELOW if self.name.startswith("min_") else ABOVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A text goes when its metric is `comparison` the bound; a bound of NaN drops nothing."""

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
    """Where it comes from, where there are several of the family: "paper", "datatrove" …"""
    alias: bool = False
    """Whether the bare name of the family means this variant."""
    about: str
    metrics: tuple[str, ...]
    """Names of the metrics, in the order that `measure` returns them."""
    thresholds: tuple[Threshold, ...]
    """In the order in which their rules are applied."""
    measure: Measure
    words: str = ""
    """Which words it counts: "spaces", "datatrove", or none."""
    languages: frozenset[str] | None = None
    """The languages it can judge; None: all that its words can be had of."""

    @property
    def name(self) -> str:
        """The full name, such as "gopher@paper"."""
        return f"{self.family}@{self.variant}" if self.variant else self.family

    @property
    def short(self) -> str:
        """The bare name where that means this variant, else the full one; begins its columns."""
        return self.family if self.alias else self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its metric columns."""
        return tuple(f"{self.short}.{metric}" for metric in self.metrics)

    @property
    def defaults(self) -> dict[str, float]:
        """The published value of each threshold."""
        return {each.name: each.default for each in self.thresholds}

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that it may give, in the order of the rules."""
        return tuple(f"{self.family}-{each.rule}" for each in self.thresholds if each.rule)

    def serves(self, language: str) -> bool:
        """Return whether it can judge texts of a language."""
        if self.languages is not None:
            return language in self.languages
        return not (self.words and language in UNSPACED - CHINESE)

    def rules(self, bounds: Bounds) -> tuple[Rule, ...]:
        """Return its rules under the bounds given, in order of application."""
        return tuple(
            Rule(
                profile=self.name,
                metric=f"{self.short}.{each.metric}",
                comparison=each.comparison,
                bound=bounds[each.name],
                reason=f"{self.family}-{each.rule}",
                threshold=each.name,
            )
            for each in self.thresholds
            if each.rule
        )
