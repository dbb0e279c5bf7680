"""What the record of a finished task tells: counts and spreads, by names that a person reads.

Records are read as JSON, since the tasks of all phases come here. A figure is named alike in every
phase that has it, and says what report.json says of the same thing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.segments.rows import KEPT
from shards.storage.files import read_json
from shards.storage.remote import AnyPath

Record = Mapping[str, Any]

TOKENS_OF_A_DOCUMENT = "tokens of a document"
MILLISECONDS_OF_A_SPLIT = "milliseconds of a split"
MILLISECONDS_OF_A_TASK = "milliseconds of a task"


@dataclass(frozen=True, slots=True)
class Spread:
    """Whole numbers, of which only these are known."""

    count: int
    total: int
    least: int
    most: int

    def values(self) -> Iterator[int]:
        """Yield numbers of the same count, total, least and most."""
        if self.count < 2:  # noqa: PLR2004  one number is its own least and most
            yield from [self.total] * self.count
            return
        yield self.least
        yield self.most
        rest = self.count - 2
        if rest:
            # Their mean lies between least and most, and so do the integers beside it.
            each, larger = divmod(self.total - self.least - self.most, rest)
            for number in range(rest):
                yield each + (number < larger)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a task counted, and what it measured."""

    counts: Mapping[str, int] = field(default_factory=dict)
    spreads: tuple[tuple[str, Spread], ...] = ()
    """By name; a name may come several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A task that has a record."""

    phase: str
    record: AnyPath
    seconds: float | None
    """How long it ran; None if an earlier attempt of the same phase had finished it."""

    def figures(self) -> Figures:
        """Return what the record tells, whichever attempt wrote it.

        An engine forgets what an attempt of its own counted that did not come to its end, and hands
        out the tasks of that attempt again. So they are counted by the attempt that does.
        """
        told = _OF_PHASE.get(self.phase, _nothing)(read_json(self.record))
        counts = {"tasks": 1, **told.counts}
        spreads = told.spreads
        if self.seconds is not None and self.phase != "map":
            milliseconds = _one(self.seconds)
            spreads = (*spreads, (MILLISECONDS_OF_A_TASK, milliseconds))
        return Figures(counts=counts, spreads=spreads)


def _nothing(_: Record) -> Figures:
    return Figures()


def _of_split(record: Record) -> Figures:
    """Return the figures of a map task."""
    segments = record["segments"]
    counts = _verdicts(tally for segment in segments for tally in segment["tallies"])
    lengths = [
        Spread(
            segment["documents"],
            segment["tokens"],
            segment.get("shortest", 0),
            segment["longest"],
        )
        for segment in segments
        if segment["documents"]
    ]
    return Figures(
        counts={
            **counts,
            "records not sampled": record["unsampled"],
            "tokens out": sum(segment["tokens"] for segment in segments),
        },
        spreads=(
            *((TOKENS_OF_A_DOCUMENT, length) for length in lengths),
            (MILLISECONDS_OF_A_SPLIT, _one(record["seconds"])),
        ),
    )


def _of_shard(record: Record) -> Figures:
    """Return the figures of a merge task."""
    shards = [*record["shards"], *record["validation"]]
    return Figures(
        counts={
            **_verdicts(record["tallies"]),
            "documents out": sum(shard["documents"] for shard in shards),
            "tokens out": sum(shard["tokens"] for shard in shards),
        }
    )


def _of_drops(record: Record) -> Figures:
    """Return the figures of a task that collects the documents to drop."""
    counts: Counter[str] = Counter({"records dropped": 0})
    for reasons in record["dropped"].values():
        for reason, rows in reasons.items():
            counts["records dropped"] += rows
            counts[f"records dropped ({reason})"] += rows
    return Figures(counts=counts)


def _of_comparison(record: Record) -> Figures:
    """Return the figures of a task that looks for duplicates."""
    counts = {
        "duplicates found": record["drops"],
        "documents compared": record["compared"],
        "documents not similar": record["failed"],
    }
    return Figures(counts=counts)


def _verdicts(tallies: Iterable[Record]) -> dict[str, int]:
    """Return records and bytes, and the records by verdict and reason."""
    counts: Counter[str] = Counter(
        dict.fromkeys(
            ("records read", "records kept", "records dropped", "records quarantined", "bytes in"),
            0,
        )
    )
    for tally in tallies:
        verdict = f"records {tally['verdict']}"
        counts["records read"] += tally["rows"]
        counts["bytes in"] += tally["bytes"]
        counts[verdict] += tally["rows"]
        if tally["verdict"] != KEPT:
            counts[f"{verdict} ({tally['reason']})"] += tally["rows"]
    return dict(counts)


def _one(seconds: float) -> Spread:
    milliseconds = round(1000 * seconds)
    return Spread(1, milliseconds, milliseconds, milliseconds)


_OF_PHASE: Mapping[str, Callable[[Record], Figures]] = {
    "map": _of_split,
    "dedup": _of_comparison,
    "known": _of_comparison,
    "drops": _of_drops,
    "merge": _of_shard,
}
