"""Projects the cost of a larger corpus from a run: everything grows with the bytes of text.

The CPU time of `map` is measured per step. The CPU time of a later stage is its duration times the
number of workers, which is more than the stage used. Near-duplicates are rarer in a small corpus
than in a large one, so a larger corpus may keep fewer tokens than projected.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shards.manifest import TRAIN, VALIDATION, Manifest, sum_shards

MAP = "map"

MIN_TEXT_BYTES = 50_000_000
"""The minimum size of text to project from, in bytes. For less text, starting the stages takes as
long as the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The cost of a run and the size of its output, from which everything is projected."""

    text_bytes: int
    """The UTF-8 bytes of the texts as read."""
    map_seconds: Mapping[str, float]
    """The CPU seconds of all sources by step of `map`."""
    later_seconds: float
    """An upper bound on the CPU seconds of the stages after `map`."""
    file_bytes: float
    """The size of the input files as stored, compressed or not, in bytes."""
    tokens: int
    dataset_bytes: int
    """The bytes of the shards."""

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of the whole run."""
        return sum(self.map_seconds.values()) + self.later_seconds

    @property
    def is_projectable(self) -> bool:
        """Whether the run read enough text to project from."""
        return self.text_bytes >= MIN_TEXT_BYTES

    def scaled(self, times: float) -> "Costs":
        """Return the costs for a multiple of the text."""
        return Costs(
            text_bytes=round(self.text_bytes * times),
            map_seconds={stage: spent * times for stage, spent in self.map_seconds.items()},
            later_seconds=self.later_seconds * times,
            file_bytes=self.file_bytes * times,
            tokens=round(self.tokens * times),
            dataset_bytes=round(self.dataset_bytes * times),
        )

    def __add__(self, other: "Costs") -> "Costs":
        stages = {**self.map_seconds, **other.map_seconds}
        return Costs(
            text_bytes=self.text_bytes + other.text_bytes,
            map_seconds={
                stage: self.map_seconds.get(stage, 0.0) + other.map_seconds.get(stage, 0.0)
                for stage in stages
            },
            later_seconds=self.later_seconds + other.later_seconds,
            file_bytes=self.file_bytes + other.file_bytes,
            tokens=self.tokens + other.tokens,
            dataset_bytes=self.dataset_bytes + other.dataset_bytes,
        )


NO_COSTS = Costs(
    text_bytes=0, map_seconds={}, later_seconds=0.0, file_bytes=0.0, tokens=0, dataset_bytes=0
)


def text_read(report: Mapping[str, Any]) -> int:
    """Return the UTF-8 bytes of all texts that a run read."""
    return sum(map(_text_bytes, report["accounting"].values()))


def _text_bytes(account: Mapping[str, Any]) -> int:
    return sum(account["bytes"].values())


def run_costs(
    manifest: Manifest, report: Mapping[str, Any], *, source: str | None = None
) -> Costs | None:
    """Return the costs of a run; None if its report lacks them, or if it read no text.

    Args:
        manifest: The manifest of the dataset.
        report: The report of the run.
        source: The only source to count, or None for all sources. Costs that are known only for all
            sources together are divided in proportion to text.
    """
    accounts = {
        name: account for name, account in report["accounting"].items() if source in (None, name)
    }
    text_bytes = sum(map(_text_bytes, accounts.values()))
    if not text_bytes or "cpu_seconds" not in report:
        return None
    part = text_bytes / text_read(report)
    seconds = {name: report["cpu_seconds"][name] for name in accounts}
    made = [sum_shards(manifest.shards(source, split=split)) for split in (TRAIN, VALIDATION)]
    return Costs(
        text_bytes=text_bytes,
        map_seconds=_map_seconds(accounts, seconds),
        later_seconds=_later_seconds(report) * part,
        file_bytes=report["input_MB"] * 1e6 * _sampled_fraction(accounts.values()) * part,
        tokens=sum(totals.tokens for totals in made),
        dataset_bytes=sum(totals.bytes for totals in made),
    )


def _map_seconds(
    accounts: Mapping[str, Any], seconds: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Return CPU seconds by step; those of reading are scaled to the records that --sample kept."""
    sums: dict[str, float] = {}
    for source, stages in seconds.items():
        fraction = _sampled_fraction([accounts[source]])
        for stage, spent in stages.items():
            # Records that --sample leaves out are read as well, but no later step gets them.
            scaled = spent * fraction if stage == "read" else spent
            sums[stage] = sums.get(stage, 0.0) + scaled
    return sums


def _sampled_fraction(accounts: Iterable[Mapping[str, Any]]) -> float:
    """Return the fraction of the records that --sample kept."""
    counts = [(account["read"], account["not_sampled"]) for account in accounts]
    read, left_out = map(sum, zip(*counts, strict=True))
    return read / (read + left_out) if read else 1.0


def _later_seconds(report: Mapping[str, Any]) -> float:
    """Return the seconds of the stages after `map` times the workers, for all of their items."""
    wall_seconds = 0.0
    for stage, seconds in report["seconds"].items():
        if stage != MAP:
            items = report["stages"][stage]
            done = items["all"] - items["finished_before"]
            wall_seconds += seconds * items["all"] / max(1, done)
    return wall_seconds * float(max(1, report["workers"]))
