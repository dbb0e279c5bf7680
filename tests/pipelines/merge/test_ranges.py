"""Ranges: a dataset has the same bytes whether its segments were cut before merge or not."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipelines.map import builder
from pipelines.merge import ranges
from pipelines.merge.ranges import choose_cut
from pipelines.run.build import build
from shards import range as range_module
from tests.pipelines.dedup.pages import related_pages
from tests.pipelines.runs import MODULE, page, shipped, small, write_wudao

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    ("segments", "shards", "here", "there"),
    [
        (1491, 512, 1, 16),  # 200 GB
        (22_352, 2048, 32, 32),  # 3 TB
        (651_931, 65_536, 256, 256),  # 100 TB
        (10, 3, 1, 1),
        (9, 0, 1, 1),
    ],
)
def test_a_cut_follows_from_segments_and_shards(
    segments: int, shards: int, here: int, there: int
) -> None:
    for remote, cut in ((False, here), (True, there)):
        assert choose_cut(segments, shards, rows=50_000 * segments, remote=remote) == cut


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


def figures(output: Path) -> dict[str, Any]:
    """What the report says that ranges must not change."""
    report = json.loads((output / "report.json").read_text())
    return {name: report[name] for name in ("dedup", "examples", "funnel", "histograms")}


@pytest.mark.parametrize(
    "kind",
    KINDS,
)
def test_ranges_change_no_byte(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(builder, "MAX_RECORDS", 7)
    monkeypatch.setattr(range_module, "ROWS_AT_ONCE", 10)
    plain, merged = tmp_path / "plain", tmp_path / "merged"
    build(MODULE, options(corpus, plain, **KINDS[kind]))
    shutil.copytree(plain / ".work" / "map", merged / ".work" / "map")
    monkeypatch.setattr(ranges, "ROWS_PER_RANGE", 14)
    monkeypatch.setattr(ranges, "choose_cut", lambda *_, **__: 4)
    build(MODULE, options(corpus, merged, **KINDS[kind]))
    assert shipped(merged) == shipped(plain)
    assert figures(merged) == figures(plain)
    tasks = json.loads((merged / "report.json").read_text())["tasks"]["ranges"]["all"]
    assert len(list((merged / ".work" / "ranges").glob("*.tokens"))) == tasks
    segments = len(list((merged / ".work" / "map").glob("*.tokens")))
    assert 8 < tasks < 4 * segments / 3  # several segments share the tasks of a cut
