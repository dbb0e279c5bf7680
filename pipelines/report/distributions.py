"""The histograms of the page: lengths, the language score, and each metric with its thresholds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.report.pictures import (
    EVERY_LANGUAGE,
    OTHER_LANGUAGES,
    Bound,
    Picture,
    Summary,
    histogram,
    quantile,
    summaries,
)
from pipelines.segments.histograms import BASE_COLUMNS, Histogram, add_histograms

_SIDES = {"<": "minimum", ">": "maximum"}


@dataclass(frozen=True)
class Distribution:
    """The distribution of one figure of the documents."""

    name: str
    counts: Mapping[str, Histogram]
    """The histograms by verdict."""
    bounds: Sequence[Bound]

    @property
    def is_constant(self) -> bool:
        """Whether the figure is the same for all documents."""
        return len({number for histogram in self.counts.values() for number in histogram}) == 1

    @property
    def median(self) -> float:
        """The median of the kept documents, or of the dropped documents if none was kept."""
        return quantile(next(filter(None, self.counts.values())), 0.5)

    @property
    def summaries(self) -> list[Summary]:
        """The summaries of the kept and of the dropped documents."""
        return list(summaries(self.counts))

    @property
    def picture(self) -> Picture:
        """The picture, with a line for each bound."""
        return histogram(self.counts, self.bounds)


def distributions(
    report: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, list[Distribution]]:
    """Return the distributions by source; the first key, "", stands for all sources.

    Args:
        report: The content of report.json.
        options: The semantic options of the dataset.
    """
    histograms = {"": add_histograms(report["histograms"].values()), **report["histograms"]}
    if len(report["histograms"]) == 1:
        histograms = {"": histograms[""]}
    threshold = options.get("language_threshold")
    return {
        source: [
            Distribution(name, columns[name], _bounds(name, report["rules"], threshold))
            for name in dict.fromkeys([*BASE_COLUMNS, *columns])
            if any(columns.get(name, {}).values())
        ]
        for source, columns in histograms.items()
    }


def _bounds(name: str, rules: Mapping[str, Any], threshold: float | None) -> list[Bound]:
    """Return the bounds on a figure, the smallest first."""
    bounds: dict[tuple[float, str], list[str]] = {}
    for language, of_language in sorted(rules.items()):
        for rule in of_language:
            if rule["metric"] == name:
                named = OTHER_LANGUAGES if language == "*" else language
                bounds.setdefault((rule["bound"], rule["comparison"]), []).append(named)
    if name == "score" and threshold:
        bounds[threshold, "<"] = [EVERY_LANGUAGE]
    return [
        Bound(value, _SIDES[comparison], languages)
        for (value, comparison), languages in sorted(bounds.items())
    ]
