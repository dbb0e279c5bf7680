"""The figures of a run for its report: sums over the records of its items.

The figures describe the run and are not part of the dataset. Lists of sources or groups name only
the largest, so that report.json stays small.
"""

import math
import os
import platform
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.merge.items import MergeRecord
from pipelines.process.processor import ProcessRecord
from pipelines.quality import QualityRules
from pipelines.quality.catalog import REASONS
from pipelines.quality.selection import reasons_of
from pipelines.segments.audit import Tally
from pipelines.segments.histograms import add_histograms
from pipelines.segments.rows import DROPPED, DUPLICATE, KEPT, QUARANTINE_REASONS, QUARANTINED
from pipelines.steps.blocklist import BLOCKED
from pipelines.steps.decontaminate import CONTAMINATED

MAX_GROUPS = 30
MAX_NAME = 200
"""The maximum number of characters of a group's name in the report."""

MAX_HISTOGRAMS = 12
"""The number of sources with their own histograms; those of all remaining sources are added up."""

OTHERS = "(others)"
"""The name for all groups, or sources, that the report does not list separately."""

STAGES = (
    "read", "document", "block", "clean", "langid", "quality", "decontaminate", "filter",
    "tokenize", "dedup",
)  # fmt: skip
"""The stages of the funnel, in the order in which a document passes them."""

_STAGE_OF = {
    "missing-field": "document",
    "wrong-type": "document",
    "nul": "document",
    "tokenizer-failed": "tokenize",
    **dict.fromkeys(
        sorted(QUARANTINE_REASONS - {"missing-field", "wrong-type", "nul", "tokenizer-failed"}),
        "read",
    ),
    BLOCKED: "block",
    "empty": "clean",
    "language": "langid",
    "language-score": "langid",
    **dict.fromkeys(REASONS, "quality"),
    CONTAMINATED: "decontaminate",
    DUPLICATE: "dedup",
    f"near-{DUPLICATE}": "dedup",
}
_REASON_RANK = {reason: rank for rank, reason in enumerate(_STAGE_OF)}


def figures(
    records: Sequence[ProcessRecord],
    merged: Mapping[str, Sequence[MergeRecord]],
    *,
    quality: QualityRules,
    filters: Collection[str] = (),
) -> dict[str, Any]:
    """Return the figures of a run for report.json, except its account, JSON-able.

    Args:
        records: The records of all items of `map`.
        merged: The records of the merge, by source.
        quality: The rules of the run.
        filters: The names of the custom filters.
    """
    judged = frozenset(reasons_of(quality.selection))
    return {
        "funnel": {
            source: funnel(_tallies(merged[source]), judged=judged, filters=filters)
            for source in sorted(merged)
        },
        "groups": {source: _largest_groups(_tallies(merged[source])) for source in sorted(merged)},
        "histograms": _histograms(merged),
        "cpu_seconds": cpu_seconds(records),
        "rules": active_rules(quality),
    }


def _tallies(merged: Iterable[MergeRecord]) -> list[Tally]:
    return [tally for record in merged for tally in record.tallies]


def funnel(
    tallies: Iterable[Tally], *, judged: Collection[str] = (), filters: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return how much was dropped at each stage for each reason, in the order of the stages.

    The last row has the kept documents, with the stage "".

    Args:
        tallies: The tallies of a source.
        judged: The reasons of the run's rules and scorers.
        filters: The names of the custom filters, with which their reasons begin.
    """
    sums: dict[tuple[str, str], Counter[str]] = {}
    for tally in tallies:
        _add(sums.setdefault((tally.verdict, tally.reason), Counter()), tally)
    rows = [
        {"stage": stage, "verdict": verdict, "reason": reason, **counts}
        for (verdict, reason), counts in sums.items()
        for stage in [_stage(verdict, reason, judged=judged, filters=filters)]
    ]
    return sorted(rows, key=_rank)


def _stage(verdict: str, reason: str, *, judged: Collection[str], filters: Collection[str]) -> str:
    if reason.partition(":")[0] in filters:
        return "filter"
    # A reason that no table has comes from the corpus, which makes the documents.
    other = "quality" if reason in judged else "document"
    return "" if verdict == KEPT else _STAGE_OF.get(reason, other)


def _rank(row: Mapping[str, Any]) -> tuple[bool, int, int, str]:
    stage, reason = row["stage"], row["reason"]
    stage_rank = STAGES.index(stage) if stage else -1
    # A reason that no table has comes first if it is the corpus's, and last if it is a scorer's.
    other = len(_REASON_RANK) if stage == "quality" else -1
    return row["verdict"] == KEPT, stage_rank, _REASON_RANK.get(reason, other), reason


def _add(sums: Counter[str], tally: Tally) -> None:
    sums["rows"] += tally.rows
    sums["bytes"] += tally.bytes
    sums["tokens"] += tally.tokens


def _largest_groups(tallies: Iterable[Tally]) -> list[dict[str, Any]]:
    """Return sums by group and verdict, sorted by kept bytes; the last row sums the smaller groups.

    The result is empty for a corpus without groups.
    """
    groups: dict[str, dict[str, Counter[str]]] = {}
    for tally in tallies:
        group = groups.setdefault(tally.group, {KEPT: Counter(), DROPPED: Counter()})
        _add(group.setdefault(tally.verdict, Counter()), tally)
    if set(groups) <= {""}:
        return []
    names = sorted(groups, key=lambda name: (-groups[name][KEPT]["bytes"], name))
    shown, rest = names[:MAX_GROUPS], names[MAX_GROUPS:]
    rows: list[dict[str, Any]] = [{"group": name[:MAX_NAME], **groups[name]} for name in shown]
    if rest:
        sums = {
            verdict: sum((groups[name].get(verdict, Counter()) for name in rest), Counter())
            for verdict in (KEPT, DROPPED, QUARANTINED)
        }
        rows.append({"group": OTHERS, "groups": len(rest), **sums})
    return rows


def _histograms(merged: Mapping[str, Sequence[MergeRecord]]) -> dict[str, Any]:
    """Return the histograms by source; those of the smallest sources are added up."""
    rows = {
        source: sum(tally.rows for tally in _tallies(records)) for source, records in merged.items()
    }
    names = sorted(rows, key=lambda source: (-rows[source], source))
    histograms = {
        source: add_histograms(record.histograms for record in merged[source])
        for source in names[:MAX_HISTOGRAMS]
    }
    if rest := names[MAX_HISTOGRAMS:]:
        others = (record for source in rest for record in merged[source])
        histograms[OTHERS] = add_histograms(record.histograms for record in others)
    return histograms


def cpu_seconds(records: Iterable[ProcessRecord]) -> dict[str, dict[str, float]]:
    """Return the CPU seconds of each step of `map`, by source."""
    sums: dict[str, Counter[str]] = {}
    for record in records:
        stages = sums.setdefault(record.source, Counter())
        for stage, seconds in record.cpu_seconds.items():
            stages[stage] += seconds  # type: ignore[assignment]  # typeshed counts in whole numbers
    return {
        source: {stage: round(seconds, 3) for stage, seconds in sums[source].items()}
        for source in sorted(sums)
    }


def active_rules(quality: QualityRules) -> dict[str, list[dict[str, Any]]]:
    """Return the rules that are on, by language ("*" for all languages that are not named)."""
    return {
        language: [
            {
                "metric": rule.metric,
                "comparison": rule.comparison,
                "bound": rule.bound,
                "reason": rule.reason,
            }
            for rule in quality.rules(language)
            if not math.isnan(rule.bound)
        ]
        for language in quality.describe()
    }


def machine() -> dict[str, Any]:
    """Return a description of the machine and its Python, on which measured times depend."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": _cpu(Path("/proc/cpuinfo")),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _cpu(path: Path) -> str:
    """Return the name of the processor; "" if it is unknown."""
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else ""
