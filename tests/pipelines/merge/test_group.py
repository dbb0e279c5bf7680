"""Groups: a dataset has the same bytes whether its segments were merged before dedup or not."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipelines.map import builder
from pipelines.merge import group, union
from pipelines.run.build import build
from pipelines.segments.plan import PlannedSegment
from pipelines.segments.segment import SieveCounts
from tests.pipelines.dedup.pages import related_pages
from tests.pipelines.runs import MODULE, content, page, small, write_wudao

KINDS: dict[str, dict[str, Any]] = {
    "none": {"dedup": "none"},
    "exact": {"dedup": "exact"},
    "local": {"dedup": "minhash", "keep_dropped": True, "shards": 5},
    "components": {
        "dedup": "minhash",
        "minhash_threshold": 0.0,
        "clusters": "components",
        "keep_dropped": True,
    },
}


def planned_segment(source: str = "s", *, longest: int = 20) -> PlannedSegment:
    return PlannedSegment(
        stem="x",
        source=source,
        rows=10,
        documents=8,
        tokens=80,
        longest=longest,
        rejects=1,
        held_bytes=3,
        table_bytes=100,
        sieved=SieveCounts(texts=8),
    )


@pytest.mark.parametrize(
    ("limit", "value", "sizes"),
    [
        ("ROWS_PER_GROUP", 1000, [5, 4]),
        ("ROWS_PER_GROUP", 39, [3, 2, 3, 1]),
        ("ROWS_PER_GROUP", 5, [1] * 9),
        ("BYTES_PER_GROUP", 200, [2, 2, 1, 2, 2]),
        ("MOST_MEMBERS", 4, [4, 1, 4]),
    ],
)
def test_groups_are_neighbours_of_one_source_within_limits(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(group, limit, value)
    segments = [planned_segment("a") for _ in range(5)] + [planned_segment("b") for _ in range(4)]
    runs = list(group.split_into_groups(segments))
    assert [len(run) for run in runs] == sizes
    assert [segment for run in runs for segment in run] == segments


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources with copies and versions in both, and records that cannot be read."""
    folder = tmp_path_factory.mktemp("corpus")
    pages = related_pages(random.Random(5), 240)
    for number in range(6):
        records: list[Any] = [
            {**page(at), "content": text} for at, text in enumerate(pages) if at % 6 == number
        ]
        records[7] = "no object"
        records[9] = {"title": "no content"}
        write_wudao(folder / "ab"[number % 2] / f"part-{number}.json", records)
    return folder


def options(corpus: Path, output: Path, **changes: Any) -> Any:
    fixed = {"validation": 0.03, "max_reject_rate": 0.5, "split_bytes": 8_000, "shards": 3}
    sources = (f"one={corpus / 'a'}", f"two={corpus / 'b'}")
    return small(output, *sources, keep_segments=True, **{**fixed, **changes})


def small_groups(monkeypatch: pytest.MonkeyPatch, *, rows: int = 40) -> None:
    monkeypatch.setattr(group, "MOST_SLICES", 0)
    monkeypatch.setattr(group, "ROWS_PER_GROUP", rows)
    monkeypatch.setattr(union, "TOKEN_BYTES_AT_ONCE", 2000)


def dataset(output: Path) -> dict[str, str]:
    return {name: sha for name, sha in content(output).items() if not name.startswith(".work")}


def figures(output: Path) -> dict[str, Any]:
    """What the report says that groups must not change."""
    report = json.loads((output / "report.json").read_text())
    return {name: report[name] for name in ("dedup", "examples", "funnel", "histograms")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local"])
def test_groups_change_no_byte(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(builder, "MAX_RECORDS", 7)
    plain, merged = tmp_path / "plain", tmp_path / "merged"
    build(MODULE, options(corpus, plain, **KINDS[kind]))
    segments = list((plain / ".work" / "map").glob("*.tokens"))
    assert "group" not in json.loads((plain / "report.json").read_text())["tasks"]
    shutil.copytree(plain / ".work" / "map", merged / ".work" / "map")

    small_groups(monkeypatch)
    build(MODULE, options(corpus, merged, **KINDS[kind]))
    groups = list((merged / ".work" / "group").glob("*.tokens"))
    assert 4 < len(groups) < len(segments) / 3
    suffixes = {path.suffix for path in (merged / ".work" / "group").glob("*.*")} - {".json"}
    assert suffixes == {path.suffix for path in (plain / ".work" / "map").glob("*.*")} - {".json"}
    assert dataset(merged) == dataset(plain)
    assert figures(merged) == figures(plain)
    assert json.loads((merged / "report.json").read_text())["tasks"]["group"]["all"] == len(groups)
