"""The section about deduplication: whatever figures the run counted, groups by size as bars."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.report.figures import whole
from pipelines.report.markup import Markup, joined, tag
from pipelines.report.tables import bar, pairs, table

_NAMES = {
    "exact groups": "Groups of equal texts",
    "near band_groups": "Groups that share a band",
    "near components": "Groups of near-duplicates",
    "near compared": "candidates compared",
    "near failed": "of these not similar enough",
    "near without_kept_mate documents": "near-duplicates similar to nothing that was kept",
    "near without_kept_mate of": "near-duplicates asked for a kept mate",
}


def clusters(report: Mapping[str, Any]) -> Markup:
    """Return the section; nothing if the run counted no groups.

    `report["dedup"]` may nest: what has sizes ("2", "5-9", "100+") for names is drawn, single
    figures are listed.
    """
    found = list(_walked(report.get("dedup", {})))
    charts = [
        part
        for name, value in found
        if isinstance(value, Mapping)
        for part in (tag("h3", _NAMES.get(name, name)), _sizes(value))
    ]
    facts = [
        (_NAMES.get(name, name), whole(value))
        for name, value in found
        if not isinstance(value, Mapping)
    ]
    if not found:
        return Markup()
    return joined(*charts, *([pairs(facts)] if facts else []))


def _walked(value: Mapping[str, Any], *above: str) -> Iterator[tuple[str, Any]]:
    """Yield the groups by size and the single figures in nested mappings, with their path."""
    for name, inner in value.items():
        path = (*above, name)
        if isinstance(inner, Mapping) and inner and not all(key[:1].isdigit() for key in inner):
            yield from _walked(inner, *path)
        else:
            yield " ".join(path), inner


def _sizes(groups: Mapping[str, int]) -> Markup:
    if not groups:
        return tag("p", "None.")
    most = max(groups.values())
    rows = [
        (f"{name} documents", whole(groups[name]), bar(groups[name], most, kind="dropped"))
        for name in sorted(groups, key=_least)
    ]
    return table(("size", "groups", ""), rows)


def _least(name: str) -> int:
    """Return the least size that a name such as "5-9" or "100+" stands for."""
    return int(name.partition("-")[0].rstrip("+"))
