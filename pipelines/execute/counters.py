"""Reads counts from the record of a finished item, and gives them readable names.

This module handles the items of all stages, so it reads records as JSON. A count has the same name
in every stage, and equals the figure in report.json. Engines show the counts as Beam counters; the
progress line of this package shows some of them.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pipelines.segments.rows import KEPT

NAMESPACE = "corpusmill"
"""The namespace of this package's Beam metrics."""

_OF_COMPARISON = {
    "drops": "duplicates found",
    "compared": "documents compared",
    "failed": "documents not similar",
}


def counter_name(stage: str, count: str) -> str:
    """Return the name of a count on an engine's page; it includes any stage other than `map`."""
    return count if stage == "map" else f"{stage}: {count}"


def item_counts(stage: str, record: Mapping[str, Any]) -> Counter[str]:
    """Return the counts in the record of an item; reasons that do not occur have no count."""
    counts = Counter(items=1)
    if stage == "map":
        segments = record["segments"]
        _add_verdicts(counts, [tally for each in segments for tally in each["tallies"]])
        counts["records not sampled"] = sum(split["unsampled"] for split in record["splits"])
        counts["tokens out"] = sum(each["tokens"] for each in segments)
    elif stage == "merge":
        shards = [*record["shards"], *record["validation"]]
        _add_verdicts(counts, record["tallies"])
        counts["documents out"] = sum(shard["documents"] for shard in shards)
        counts["tokens out"] = sum(shard["tokens"] for shard in shards)
    elif stage == "drops":
        counts["records dropped"] = 0
        for reasons in record["dropped"].values():
            counts["records dropped"] += sum(reasons.values())
            counts.update({f"records dropped ({reason})": n for reason, n in reasons.items()})
    elif stage in ("dedup", "known"):
        counts.update({name: record[field] for field, name in _OF_COMPARISON.items()})
    return counts


def _add_verdicts(counts: Counter[str], tallies: list[Mapping[str, Any]]) -> None:
    """Add the totals of records and bytes, and the number of records by verdict and reason."""
    for verdict in ("read", "kept", "dropped", "quarantined"):
        counts[f"records {verdict}"] = 0
    for tally in tallies:
        verdict = f"records {tally['verdict']}"
        counts["records read"] += tally["rows"]
        counts["bytes in"] += tally["bytes"]
        counts[verdict] += tally["rows"]
        if tally["verdict"] != KEPT:
            counts[f"{verdict} ({tally['reason']})"] += tally["rows"]


def progress_counts(stage: str, record: Mapping[str, Any]) -> dict[str, int]:
    """Return the amounts that a finished item adds to the progress line."""
    if stage not in ("map", "drops"):
        return {}
    counts = item_counts(stage, record)
    if stage == "map":
        read, kept = counts["records read"], counts["records kept"]
        return {"documents": read, "kept": kept, "dropped": read - kept}
    dropped = counts["records dropped"]
    return {"documents dropped": dropped} if dropped else {}
