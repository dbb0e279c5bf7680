"""The section of histograms: lengths, the language score, and each metric with its bounds."""

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.report.charts import Bound, caption, chart, quantile
from pipelines.report.figures import short
from pipelines.report.markup import Markup, joined, tag
from pipelines.report.tables import folded, told
from pipelines.segments.histograms import PLAIN, add_histograms

_TITLES = {
    "bytes": "Length in bytes",
    "tokens": "Length in tokens",
    "score": "Language score",
}
_WHICH = {"<": "min", ">": "max"}
_MOST_LANGUAGES = 3
"""Languages that the label of a line names."""

Bounds = dict[tuple[float, str], list[str]]
"""Languages by bound and comparison."""


def histograms(report: Mapping[str, Any], options: Mapping[str, Any]) -> Markup:
    """Return the section.

    Args:
        report: What report.json holds.
        options: The semantic options of the dataset.
    """
    found = report["histograms"]
    rules = report["rules"]
    threshold = options.get("language_threshold")
    parts = [_grid(add_histograms(found.values()), rules, threshold)]
    if len(found) > 1:
        parts += [folded(source, _grid(each, rules, threshold)) for source, each in found.items()]
    keys = tag(
        "p",
        tag("span", class_="key kept"),
        "kept, upwards",
        tag("span", class_="key dropped"),
        "dropped, downwards; dashed lines are thresholds",
    )
    return told(
        "Heights are shares of the kept, and of the dropped, documents that have the figure. A "
        "document may be dropped for another reason than the metric shown.",
        keys,
        *parts,
    )


def _grid(columns: Mapping[str, Any], rules: Mapping[str, Any], threshold: float | None) -> Markup:
    names = [*PLAIN, *(name for name in columns if name not in PLAIN)]
    there = [name for name in names if any(columns.get(name, {}).values())]
    same = [name for name in there if _is_constant(columns[name])]
    figures = [
        _figure(name, columns[name], _bounds(name, rules, threshold))
        for name in there
        if name not in same
    ]
    grid = tag("div", *figures, class_="grid")
    if not same:
        return grid
    told = ", ".join(f"{name} {short(_value(columns[name]))}" for name in same)
    return joined(grid, tag("p", f"The same for all documents: {told}.", class_="note"))


def _is_constant(counts: Mapping[str, Any]) -> bool:
    return len({number for each in counts.values() for number in each}) == 1


def _value(counts: Mapping[str, Any]) -> float:
    return quantile(next(filter(None, counts.values())), 0.5)


def _figure(name: str, counts: Mapping[str, Any], found: Bounds) -> Markup:
    bounds = [
        Bound(value=value, label=_label(value, comparison, languages))
        for (value, comparison), languages in sorted(found.items())
    ]
    told = [
        f"{_WHICH[comparison]} {short(value)}: {_languages(languages)}"
        for (value, comparison), languages in sorted(found.items())
    ]
    return tag(
        "figure",
        tag("figcaption", _TITLES.get(name, name)),
        chart(counts, bounds, name=name),
        tag("p", caption(counts)),
        *([tag("p", f"Thresholds: {'; '.join(told)}")] if told else []),
    )


def _bounds(name: str, rules: Mapping[str, Any], threshold: float | None) -> Bounds:
    """Return the languages of each bound on a figure."""
    found: Bounds = {}
    for language, each in sorted(rules.items()):
        for rule in each:
            if rule["metric"] == name:
                found.setdefault((rule["bound"], rule["comparison"]), []).append(language)
    if name == "score" and threshold:
        found[threshold, "<"] = ["all"]
    return found


def _label(value: float, comparison: str, languages: list[str]) -> str:
    named = ",".join(languages) if len(languages) <= _MOST_LANGUAGES else f"{len(languages)} lang."
    shown = "" if languages in (["*"], ["all"]) else f" {named}"
    return f"{_WHICH[comparison]} {short(value)}{shown}"


def _languages(languages: Iterable[str]) -> str:
    names = {"*": "every other language", "all": "every language"}
    return ", ".join(names.get(language, language) for language in languages)
