"""Sums and sorts figures of report.json for the templates of the sections."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.segments.rows import QUARANTINED


@dataclass(frozen=True, slots=True)
class TextTotals:
    """The number of documents (rows), and the bytes and tokens of their texts."""

    rows: int
    bytes: int
    tokens: int


def sums(rows: Iterable[Mapping[str, Any]], verdict: str | None = None) -> TextTotals:
    """Return the sums over the funnel's rows with `verdict`, or over all rows if it is None."""
    chosen = [row for row in rows if verdict in (None, row.get("verdict"))]
    return TextTotals(
        *(sum(row.get(name, 0) for row in chosen) for name in ("rows", "bytes", "tokens"))
    )


def by_size(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return rows of the funnel sorted by number of documents, the largest number first."""
    return sorted(rows, key=lambda row: -row["rows"])


def in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """Return names in the order of `order`; names that `order` lacks follow, sorted."""
    ranks = {name: rank for rank, name in enumerate(order)}
    return sorted(names, key=lambda name: (ranks.get(name, len(ranks)), name))


def has_rejects(report: Mapping[str, Any]) -> bool:
    """Return whether there is an example of a record that could not be read."""
    return any(
        row["verdict"] == QUARANTINED and row["reason"] in reasons
        for source, reasons in report["examples"].items()
        for row in report["funnel"][source]
    )


def duplicates(counts: Mapping[str, Any], *path: str) -> Iterator[tuple[str, int | dict[str, int]]]:
    """Yield the counts of deduplication, by name: a figure, or groups by size, smallest first.

    Args:
        counts: Nested mappings as in report.json; names such as "2", "5-9" or "100+" are sizes.
        path: The names of the mappings around `counts`.
    """
    for name, value in counts.items():
        title = " ".join((*path, name))
        if not isinstance(value, Mapping):
            yield title, value
        elif all(key[:1].isdigit() for key in value):
            yield title, {size: value[size] for size in sorted(value, key=_smallest) if value[size]}
        else:
            yield from duplicates(value, *path, name)


def unknown_tokens(counts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> list[dict[str, Any]]:
    """Return the counts of tokens by source and language as rows, most unknown tokens first."""
    rows = [
        {"source": source, "language": language, **of_language}
        for source, languages in counts.items()
        for language, of_language in languages.items()
    ]
    return sorted(rows, key=lambda row: (-row["unknown"], row["source"], row["language"]))


def _smallest(sizes: str) -> int:
    """Return the smallest size that a name such as "5-9" or "100+" stands for."""
    return int(sizes.partition("-")[0].rstrip("+"))
