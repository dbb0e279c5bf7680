"""The histograms of the page: lengths, the language score, and each metric with its thresholds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.report.formats import short
from pipelines.report.pictures import Picture, caption, histogram, quantile
from pipelines.segments.histograms import PLAIN, Histogram, add_histograms

_TITLES = {
    "bytes": "Length in bytes",
    "tokens": "Length in tokens",
    "score": "Language score",
}
_SIDES = {"<": "min", ">": "max"}
_EVERY_LANGUAGE = "all"
_LANGUAGE_NAMES = {"*": "every other language", _EVERY_LANGUAGE: "every language"}
_MAX_NAMED = 12
"""Characters that the names of languages take in the label of a line; others are counted."""

Bounds = Mapping[tuple[float, str], Sequence[str]]
"""Languages by bound and comparison."""


@dataclass(frozen=True)
class Distribution:
    """How one figure of the documents is distributed."""

    name: str
    counts: Mapping[str, Histogram]
    """By verdict."""
    bounds: Bounds

    @property
    def title(self) -> str:
        """What a person calls the figure."""
        return _TITLES.get(self.name, self.name)

    @property
    def is_constant(self) -> bool:
        """Whether the figure is the same for all documents."""
        return len({number for histogram in self.counts.values() for number in histogram}) == 1

    @property
    def median(self) -> float:
        """Of the kept documents, or of the dropped ones if none was kept."""
        return quantile(next(filter(None, self.counts.values())), 0.5)

    @property
    def caption(self) -> str:
        """Numbers, medians and ranges in words."""
        return caption(self.counts)

    @property
    def thresholds(self) -> list[str]:
        """Each bound with the languages for which it holds."""
        return [
            f"{_SIDES[comparison]} {short(bound)}: "
            + ", ".join(_LANGUAGE_NAMES.get(language, language) for language in languages)
            for (bound, comparison), languages in sorted(self.bounds.items())
        ]

    @property
    def picture(self) -> Picture:
        """The picture, with a line for each bound."""
        labels = [
            (bound, _label(bound, comparison, languages))
            for (bound, comparison), languages in self.bounds.items()
        ]
        return histogram(self.counts, labels)


def distributions(
    report: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, list[Distribution]]:
    """Return the distributions by source, first those of all sources together, called "".

    Args:
        report: What report.json holds.
        options: The semantic options of the dataset.
    """
    histograms = {"": add_histograms(report["histograms"].values()), **report["histograms"]}
    if len(report["histograms"]) == 1:
        histograms = {"": histograms[""]}
    threshold = options.get("language_threshold")
    return {
        source: [
            Distribution(name, columns[name], _bounds(name, report["rules"], threshold))
            for name in dict.fromkeys([*PLAIN, *columns])
            if any(columns.get(name, {}).values())
        ]
        for source, columns in histograms.items()
    }


def _bounds(name: str, rules: Mapping[str, Any], threshold: float | None) -> Bounds:
    """Return the languages of each bound on a figure."""
    bounds: dict[tuple[float, str], list[str]] = {}
    for language, own_rules in sorted(rules.items()):
        for rule in own_rules:
            if rule["metric"] == name:
                bounds.setdefault((rule["bound"], rule["comparison"]), []).append(language)
    if name == "score" and threshold:
        bounds[threshold, "<"] = [_EVERY_LANGUAGE]
    return bounds


def _label(bound: float, comparison: str, languages: Sequence[str]) -> str:
    label = f"{_SIDES[comparison]} {short(bound)}"
    if languages in (["*"], [_EVERY_LANGUAGE]):
        return label
    named = ",".join(languages)
    return f"{label} {named if len(named) <= _MAX_NAMED else f'{len(languages)} lang.'}"
