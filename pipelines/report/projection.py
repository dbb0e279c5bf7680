"""What a larger corpus would cost, as far as a run tells: everything grows with the bytes of text.

CPU time of the map is measured per stage. The later phases are counted as if every worker had been
busy for as long as they took, which is more than they used. Near-duplicates are rarer in a small
corpus than in a large one, so the tokens left of a large one may be fewer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shards.manifest import TRAIN, VALIDATION, Manifest, sum_shards

MAP = "map"


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A corpus of some size."""

    text_bytes: float
    """UTF-8 bytes of the texts as read."""
    cpu_hours: float
    file_bytes: float
    """Of input files like those of the run, packed as they were."""
    tokens: float
    dataset_bytes: float
    """Of the shards."""

    def wall_hours(self, cores: int) -> float:
        """Return how long it takes if so many cores like those of the run are never idle."""
        return self.cpu_hours / cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a run took and gave, of which everything is projected."""

    text_bytes: int
    map_seconds: Mapping[str, float]
    """CPU seconds by stage, of all sources."""
    later_seconds: float
    """CPU seconds of the phases behind the map, at most."""
    file_bytes: float
    tokens: int
    dataset_bytes: int

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of the whole run."""
        return sum(self.map_seconds.values()) + self.later_seconds

    def projected(self, text_bytes: float) -> Projection:
        """Return what a corpus with so many bytes of text would take and give."""
        times = text_bytes / self.text_bytes
        return Projection(
            text_bytes=text_bytes,
            cpu_hours=self.cpu_seconds * times / 3600,
            file_bytes=self.file_bytes * times,
            tokens=self.tokens * times,
            dataset_bytes=self.dataset_bytes * times,
        )


def costs(manifest: Manifest, report: Mapping[str, Any]) -> Costs | None:
    """Return what a run took; None if its report does not tell, or there was no text."""
    account = report["accounting"]
    text_bytes = sum(sum(figures["bytes"].values()) for figures in account.values())
    if not text_bytes or "cpu_seconds" not in report:
        return None
    made = [sum_shards(manifest.shards(split=split)) for split in (TRAIN, VALIDATION)]
    return Costs(
        text_bytes=text_bytes,
        map_seconds=_stages(account, report["cpu_seconds"]),
        later_seconds=_later_seconds(report),
        file_bytes=report["input_MB"] * 1e6 * _sampled(account),
        tokens=sum(each.tokens for each in made),
        dataset_bytes=sum(each.bytes for each in made),
    )


def _stages(
    account: Mapping[str, Any], seconds: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Return CPU seconds by stage, reading scaled to the records that --sample took."""
    sums: dict[str, float] = {}
    for source, stages in seconds.items():
        taken = _sampled({source: account[source]})
        for stage, spent in stages.items():
            # Records that --sample leaves out are read too, but no later stage sees them.
            own = spent * taken if stage == "read" else spent
            sums[stage] = sums.get(stage, 0.0) + own
    return sums


def _sampled(account: Mapping[str, Any]) -> float:
    """Return the share of the documents that --sample took."""
    read = sum(figures["read"] for figures in account.values())
    left = sum(figures["not_sampled"] for figures in account.values())
    return read / (read + left) if read else 1.0


def _later_seconds(report: Mapping[str, Any]) -> float:
    """Return wall seconds times workers of the phases behind the map, for all of their tasks."""
    whole = 0.0
    for phase, seconds in report["seconds"].items():
        if phase != MAP:
            tasks = report["tasks"][phase]
            done = tasks["all"] - tasks["finished_before"]
            whole += seconds * tasks["all"] / max(1, done)
    return whole * float(max(1, report["workers"]))
