from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pipelines.report.projection import run_costs, text_read
from shards.manifest import FileEntry, Manifest, ShardEntry


@dataclass(frozen=True)
class Made:
    """A manifest in which only the shards matter."""

    tokens: int

    def shards(self, source: str | None = None, *, split: str = "train") -> Sequence[ShardEntry]:
        del source
        files = {"bin": FileEntry(bytes=2 * self.tokens, crc32c=0)}
        shard = ShardEntry(path="x", documents=1, tokens=self.tokens, files=files)
        return [shard] if split == "train" else []


def report(**changes: Any) -> dict[str, Any]:
    read = {"read": 10, "not_sampled": 0, "bytes": {"kept": 800, "dropped": 200}}
    return {
        "accounting": {"a": read, "b": read},
        "cpu_seconds": {"a": {"read": 10.0, "clean": 5.0}, "b": {"read": 20.0, "clean": 1.0}},
        "seconds": {"map": 100.0, "dedup": 3.0, "merge": 6.0},
        "stages": {name: {"all": 4, "finished_before": 0} for name in ("map", "dedup", "merge")},
        "workers": 2,
        "input_MB": 0.004,
        **changes,
    }


def test_costs_are_those_of_all_sources_and_phases() -> None:
    spent = run_costs(cast("Manifest", Made(500)), report())
    assert spent is not None
    assert spent.map_seconds == {"read": 30.0, "clean": 6.0}
    assert spent.later_seconds == 18.0
    assert spent.text_bytes == text_read(report()) == 2000
    assert spent.cpu_seconds == 36 + 18
    assert (spent.tokens, spent.dataset_bytes, spent.file_bytes) == (500, 1000, 4000)
