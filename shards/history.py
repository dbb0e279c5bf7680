"""What report.json says of each generation of a dataset, and of one that many became."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shards.manifest import Generation, Manifest, sum_shards
from shards.records import from_json
from shards.storage.files import read_json, size_if_there, write_json
from shards.storage.remote import AnyPath

REPORT = "report.json"

_SUMS = ("known", "seconds")
"""What only the run of a generation knew, and is added."""


def generation_figures(generation: Generation) -> dict[str, Any]:
    """Return what report.json says of a generation, as far as the manifest knows it."""
    totals = sum_shards(
        shard
        for source in generation.sources.values()
        for shard in (*source.shards, *source.validation)
    )
    accounts = generation.accounting.values()
    return {
        "name": generation.name,
        "number": generation.number,
        "inputs": len(generation.inputs),
        "input_bytes": sum(entry.bytes for entry in generation.inputs),
        "documents": totals.documents,
        "tokens": totals.tokens,
        "read": sum(account["read"] for account in accounts),
        "dropped": sum(sum(account["dropped"].values()) for account in accounts),
    }


@dataclass(frozen=True, kw_only=True)
class _Row:
    """What report.json says of a generation."""

    name: str
    number: int = 0
    inputs: int = 0
    input_bytes: int = 0
    documents: int = 0
    tokens: int = 0
    read: int = 0
    dropped: int = 0
    known: int = 0
    seconds: float = 0.0
    finished: str = ""
    lag: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.finished:
            datetime.fromisoformat(self.finished)
        if self.lag and self.lag.keys() != {"median", "worst"}:
            raise ValueError("a lag has a median and a worst")


def told_rows(report: object) -> dict[str, Mapping[str, Any]]:
    """Return what report.json says of generations by their names, but for what makes no sense."""
    rows = report.get("generations") if isinstance(report, dict) else None
    told = {}
    for row in rows if isinstance(rows, list) else ():
        with suppress(ValueError):
            told[from_json(_Row, row, where="generations").name] = row
    return told


def rewrite_history(directory: AnyPath, manifest: Manifest, members: Iterable[Generation]) -> None:
    """Have the report, if there is one with a history, tell that of a compacted dataset.

    Args:
        directory: The dataset's folder.
        manifest: Of the compacted dataset.
        members: The generations that became one: the one that the report does not know.
    """
    path = directory / REPORT
    report = read_json(path) if size_if_there(path) >= 0 else {}
    if not isinstance(report, dict) or "generations" not in report:
        return
    told = told_rows(report)
    before = [told[member.name] for member in members if member.name in told]
    generations = [
        {**(told.get(each.name) or _sums(before)), **generation_figures(each)}
        for each in manifest.generations
    ]
    write_json(path, {**report, "dataset": manifest.identity, "generations": generations})


def _sums(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was told of generations, as if one run had made them when the last was made."""
    known = [name for name in _SUMS if rows and all(name in row for row in rows)]
    sums = {name: sum(row[name] for row in rows) for name in known}
    finished = [row["finished"] for row in rows if "finished" in row]
    return {**sums, **({"finished": max(finished)} if finished else {})}
