"""Ranges: a dataset has the same bytes whether its segments were cut before merge or not."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.dedup.drops import drop_path
from pipelines.dedup.phases import Deduplicated
from pipelines.engine.phases import Phases
from pipelines.engine.runner import Runner
from pipelines.map import builder
from pipelines.merge import ranges
from pipelines.merge.ranges import choose_cut, cut_into_ranges
from pipelines.run.build import build
from pipelines.segments.plan import Plan
from pipelines.segments.segment import with_suffix
from shards import range as range_module
from shards.tables import open_table
from tests.nightly import a_few
from tests.pipelines.dedup.pages import related_pages
from tests.pipelines.made_segments import (
    DTYPE,
    distinct_texts,
    equal_texts,
    exact_dedup,
    write_segments,
)
from tests.pipelines.runs import FLAGS, MODULE, page, run, shipped, small, write_wudao

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


def cut(output: Path, plan: Plan, number: int, *, drops: tuple[str, ...] = ()) -> Plan:
    """The plan of the ranges of the one source."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ranges, "choose_cut", lambda *_, **__: number)
        phases = Phases(output / ".work", Runner([], num_workers=0))
        dedup = Deduplicated(drops=drops)
        return cut_into_ranges(plan, phases, output, shards={"s": 8}, dedup=dedup)["s"]


def test_ranges_are_the_segments_without_what_was_dropped(tmp_path: Path) -> None:
    parts, work = equal_texts(np.random.default_rng(21)), tmp_path / ".work"
    plan = write_segments(work, parts)
    exact_dedup(tmp_path, plan, ranges=1)
    (work / "drops").mkdir()
    shutil.copy(drop_path(work, "dedup/d0"), drop_path(work, "drops/d0"))
    found = cut(tmp_path, plan, 4, drops=("drops/d0",))
    assert [(part.index, part.total) for part in found.segments] == [
        (index, 4) for index in range(4)
    ]
    assert sum(part.rows for part in found.segments) == sum(map(len, parts))
    kept = sorted(distinct_texts(parts).values(), key=lambda doc: doc.order)
    for part in found.segments:
        stem = part.path(work)
        documents = open_table(with_suffix(stem, "documents"))
        wanted = [doc for doc in kept if part.within.low <= doc.order < part.within.high]
        assert documents["order"].to_pylist() == [doc.order for doc in wanted]
        tokens = [token for doc in wanted for token in doc.tokens]
        assert np.fromfile(with_suffix(stem, "tokens"), DTYPE).tolist() == tokens
        assert open_table(with_suffix(stem, "holdout"))["holdout"].to_pylist() == sorted(
            doc.holdout for doc in wanted
        )
        audit = open_table(with_suffix(stem, "audit"))
        assert [order for order in audit["order"].to_pylist()] == sorted(
            doc.order
            for docs in parts
            for doc in docs
            if part.within.low <= doc.order < part.within.high
        )
        verdicts = audit["verdict"].to_pylist()
        assert verdicts.count("kept") == len(wanted)


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
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
    assert len(list((merged / ".work" / "ranges").glob("*.tokens"))) == tasks > 8


KILLS = [
    (r"\.work/ranges/.*\.audit$", 1),
    (r"\.work/ranges/.*\.json$", 3),
    (r"\.work/plan/", 2),
    (r"\.work/merge/.*\.json$", 2),
]
"""The n-th file of a pattern that is about to get its name."""


@pytest.mark.slow
@pytest.mark.parametrize("kill", a_few(KILLS, of_each=2))
def test_killed_at_a_range_the_same_command_goes_on(
    reference: Path, tmp_path: Path, kill: tuple[str, int]
) -> None:
    output = tmp_path / "out"
    shutil.copytree(reference / ".work" / "map", output / ".work" / "map")
    script = Path(__file__).with_name("kill_in_ranges.py")
    flags = [*FLAGS, "--output", output]
    killed = run(*flags, script=[script, *kill, "kill -9 0"])
    assert killed.returncode == -9, killed.stderr
    done = len(list((output / ".work" / "ranges").glob("[!.]*.json")))
    again = run(*flags, script=[script, "never", 1, "true"])
    assert again.returncode == 0, again.stderr
    assert (f"ranges: {done} of " in again.stderr) == (done > 0)
    assert "map 100 %" not in again.stderr
    assert shipped(output) == shipped(reference)
