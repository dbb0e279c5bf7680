"""The figures of a run for its report: sums over the records that its tasks left.

They say how a run went and what it met; nothing of them is part of the dataset. What grows with the
number of sources or groups is cut to the largest, so that report.json stays small.
"""

import math
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.map.mapper import SplitRecord
from pipelines.map.stages import BLOCKED, CONTAMINATED
from pipelines.merge.tasks import MergeRecord
from pipelines.quality import Quality
from pipelines.segments.audit import Tally
from pipelines.segments.histograms import add_histograms
from pipelines.segments.rows import DROPPED, DUPLICATE, KEPT, QUARANTINED, REJECTS

MOST_GROUPS = 30
MOST_NAME = 200
"""Characters of a group's name that are told."""

MOST_HISTOGRAMS = 12
"""Sources with histograms of their own; those of the others are added up."""

OTHERS = "(others)"
"""Stands for the groups, or the sources, that are not told one by one."""

STAGES = (
    "read", "document", "block", "clean", "langid", "quality", "decontaminate", "tokenize", "dedup",
)  # fmt: skip
"""In the order in which a document meets them."""

_STAGE_OF = {
    "missing-field": "document",
    "wrong-type": "document",
    "nul": "document",
    "tokenizer-failed": "tokenize",
    **dict.fromkeys(REJECTS - {"missing-field", "wrong-type", "nul", "tokenizer-failed"}, "read"),
    BLOCKED: "block",
    "empty": "clean",
    "language": "langid",
    "language-score": "langid",
    **dict.fromkeys(Quality.all_reasons, "quality"),
    CONTAMINATED: "decontaminate",
    DUPLICATE: "dedup",
    f"near-{DUPLICATE}": "dedup",
}
_RANK = {reason: rank for rank, reason in enumerate(_STAGE_OF)}


def figures(
    records: Sequence[SplitRecord],
    merged: Mapping[str, Sequence[MergeRecord]],
    *,
    quality: Quality,
) -> dict[str, Any]:
    """Return what report.json says of a run besides its account, JSON-able.

    Args:
        records: Of all splits.
        merged: Of all shards, by source.
        quality: The rules of the run.
    """
    return {
        "funnel": {source: funnel(_tallies(found)) for source, found in sorted(merged.items())},
        "groups": {source: _groups(_tallies(found)) for source, found in sorted(merged.items())},
        "histograms": _histograms(merged),
        "cpu_seconds": cpu_seconds(records),
        "rules": rules(quality),
    }


def _tallies(merged: Iterable[MergeRecord]) -> list[Tally]:
    return [tally for record in merged for tally in record.tallies]


def funnel(tallies: Iterable[Tally]) -> list[dict[str, Any]]:
    """Return how much left at each stage for which reason, in the order of the stages.

    The last row is what was kept, with the stage "".
    """
    sums: dict[tuple[str, str], Counter[str]] = {}
    for each in tallies:
        _add(sums.setdefault((each.verdict, each.reason), Counter()), each)
    rows = [
        {"stage": _stage(verdict, reason), "verdict": verdict, "reason": reason, **found}
        for (verdict, reason), found in sums.items()
    ]
    return sorted(rows, key=_place)


def _stage(verdict: str, reason: str) -> str:
    # A reason that no stage knows is one of a corpus, given where its documents are made.
    return "" if verdict == KEPT else _STAGE_OF.get(reason, "document")


def _place(row: Mapping[str, Any]) -> tuple[bool, int, int, str]:
    stage, reason = row["stage"], row["reason"]
    at = STAGES.index(stage) if stage else -1
    return row["verdict"] == KEPT, at, _RANK.get(reason, -1), reason


def _add(sums: Counter[str], tally: Tally) -> None:
    sums["rows"] += tally.rows
    sums["bytes"] += tally.bytes
    sums["tokens"] += tally.tokens


def _groups(tallies: Iterable[Tally]) -> list[dict[str, Any]]:
    """Return the sums of each verdict by group, the largest by bytes kept first, others together.

    Nothing for a corpus without groups.
    """
    groups: dict[str, dict[str, Counter[str]]] = {}
    for each in tallies:
        found = groups.setdefault(each.group, {KEPT: Counter(), DROPPED: Counter()})
        _add(found.setdefault(each.verdict, Counter()), each)
    if set(groups) <= {""}:
        return []
    names = sorted(groups, key=lambda name: (-groups[name][KEPT]["bytes"], name))
    shown, rest = names[:MOST_GROUPS], names[MOST_GROUPS:]
    rows: list[dict[str, Any]] = [{"group": name[:MOST_NAME], **groups[name]} for name in shown]
    if rest:
        sums = {
            verdict: sum((groups[name].get(verdict, Counter()) for name in rest), Counter())
            for verdict in (KEPT, DROPPED, QUARANTINED)
        }
        rows.append({"group": OTHERS, "groups": len(rest), **sums})
    return rows


def _histograms(merged: Mapping[str, Sequence[MergeRecord]]) -> dict[str, Any]:
    """Return the histograms by source, those of all but the largest sources added up."""
    rows = {
        source: sum(tally.rows for tally in _tallies(found)) for source, found in merged.items()
    }
    names = sorted(rows, key=lambda source: (-rows[source], source))
    made = {
        source: add_histograms(record.histograms for record in merged[source])
        for source in names[:MOST_HISTOGRAMS]
    }
    if rest := names[MOST_HISTOGRAMS:]:
        made[OTHERS] = add_histograms(
            record.histograms for source in rest for record in merged[source]
        )
    return made


def cpu_seconds(records: Iterable[SplitRecord]) -> dict[str, dict[str, float]]:
    """Return the CPU seconds that each stage of the map took, by source."""
    sums: dict[str, Counter[str]] = {}
    for record in records:
        found = sums.setdefault(record.source, Counter())
        for stage, seconds in record.cpu_seconds.items():
            found[stage] += seconds  # type: ignore[assignment]  # typeshed counts in whole numbers
    return {
        source: {stage: round(seconds, 3) for stage, seconds in sums[source].items()}
        for source in sorted(sums)
    }


def rules(quality: Quality) -> dict[str, list[dict[str, Any]]]:
    """Return the rules that are on, by language ("*" for those of which nothing else is said)."""
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
    """Return what a figure needs beside it: the machine and the Python that gave it."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": _cpu(Path("/proc/cpuinfo")),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _cpu(path: Path) -> str:
    """Return the name of the processor, "" where Linux does not tell it."""
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else ""
