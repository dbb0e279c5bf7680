"""Groups: no byte of a dataset tells whether its segments were merged before dedup."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.dedup.drops import GONE
from pipelines.dedup.exact import MOST_GROWTH, ROWS_PER_TASK, num_ranges
from pipelines.dedup.phases import Deduplicated
from pipelines.merge import group, union
from pipelines.merge.union import MergedOrder, write_union
from pipelines.run.build import build
from pipelines.segments import segment
from pipelines.segments.plan import PlannedSegment
from pipelines.segments.range import EVERYTHING, Range
from pipelines.segments.segment import Sieved
from pipelines.segments.tables import open_table
from tests.pipelines.dedup.test_near_run import texts
from tests.pipelines.made_segments import DTYPE, Doc, random_docs, write_segment
from tests.pipelines.runs import content, page, small, write_wudao

MODULE = "pipelines.wudao"
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


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources with copies and versions in both, and records that cannot be read."""
    folder = tmp_path_factory.mktemp("corpus")
    pages = texts(random.Random(5), 240)
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
    monkeypatch.setattr(union, "TOKENS_AT_ONCE", 1000)
    monkeypatch.setattr(union, "BYTES_AT_ONCE", 10_000)


def dataset(output: Path) -> dict[str, str]:
    return {name: sha for name, sha in content(output).items() if not name.startswith(".work")}


def told(output: Path) -> dict[str, Any]:
    """What the report says that no run should change."""
    report = json.loads((output / "report.json").read_text())
    return {name: report[name] for name in ("dedup", "examples", "funnel", "histograms")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_groups_change_no_byte(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(segment, "MAX_RECORDS", 7)
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
    assert told(merged) == told(plain)
    assert json.loads((merged / "report.json").read_text())["tasks"]["group"]["all"] == len(groups)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "nth"),
    [
        (r"\.work/group/.*\.audit$", 1),
        (r"\.work/group/.*\.tokens$", 3),
        (r"\.work/group/.*\.json$", 2),
        (r"\.work/plan/", 2),
        (r"\.work/dedup/.*\.json$", 1),
    ],
)
def test_killed_at_a_group_the_same_command_goes_on(
    reference: Path, tmp_path: Path, pattern: str, nth: int
) -> None:
    output, here = tmp_path / "out", Path(__file__).parent
    shutil.copytree(reference / ".work" / "map", output / ".work" / "map")
    flags = [MODULE, "--split-bytes", "12000", "--shards", "8", "--output", str(output)]

    def run(pattern: str, nth: int) -> subprocess.CompletedProcess[str]:
        script = [sys.executable, str(here / "kill_in_group.py"), pattern, str(nth), "kill -9 0"]
        return subprocess.run(
            [*script, *flags],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={**os.environ, "EVENTS_SO_FAR": str(tmp_path / f"events-{pattern[:3]}")},
            start_new_session=True,
        )

    assert run(pattern, nth).returncode == -9
    done = len(list((output / ".work" / "group").glob("[!.]*.json")))
    again = run("never", 1)
    assert again.returncode == 0, again.stderr
    assert "map 100 %" not in again.stderr
    if done:
        assert f"group: {done} of " in again.stderr
    assert dataset(output) == dataset(reference)


# --- what a union is


def stems(tmp_path: Path, parts: list[list[Doc]], **changes: Any) -> list[Path]:
    for at, docs in enumerate(parts):
        write_segment(tmp_path / f"s{at}", docs, relative=f"part-{at}.json", **changes)
    return [tmp_path / f"s{at}" for at in range(len(parts))]


def test_a_union_is_the_segment_of_all_rows(tmp_path: Path) -> None:
    docs = random_docs(np.random.default_rng(3), 90)
    fallen = Doc(order=77, position=90, reason="language")
    members = stems(tmp_path, [docs[:50], [fallen], docs[50:]])
    write_segment(tmp_path / "whole", [*docs, fallen])
    files = write_union(tmp_path / "u", members, dtype=DTYPE)
    assert set(files) == {"audit", "examples", "documents", "tokens", "bins", "holdout", "hashes"}
    for suffix in ("bins", "holdout", "hashes"):
        assert open_table(tmp_path / f"u.{suffix}").equals(open_table(tmp_path / f"whole.{suffix}"))
    assert (tmp_path / "u.tokens").read_bytes() == (tmp_path / "whole.tokens").read_bytes()
    for suffix, entry in files.items():
        assert entry.bytes == (tmp_path / f"u.{suffix}").stat().st_size
    for suffix in ("audit", "documents"):
        made, meant = (open_table(tmp_path / f"{name}.{suffix}") for name in ("u", "whole"))
        assert made.drop_columns(["path"]).to_pylist() == meant.drop_columns(["path"]).to_pylist()
        paths = dict(zip(made["order"].to_pylist(), made["path"].to_pylist(), strict=True))
        assert [paths[doc.order] for doc in docs] == ["part-0.json"] * 50 + ["part-2.json"] * 40


def test_equal_texts_stay_two_rows_and_what_is_gone_stays_gone(tmp_path: Path) -> None:
    same = 5 << 70
    members = stems(
        tmp_path,
        [[Doc(order=9, hash=same), Doc(order=11, hash=same)], [Doc(order=7, hash=same)]],
    )
    write_union(tmp_path / "u", members, dtype=DTYPE)
    hashes = open_table(tmp_path / "u.hashes")
    assert hashes.select(["order", "row", "copies"]).to_pylist() == [
        {"order": 7, "row": 0, "copies": 1},
        {"order": 9, "row": 1, "copies": 2},
    ]


def test_rows_are_numbered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = MergedOrder.of([np.array([10, 30, 50]), np.array([], int), np.array([20, 30])])
    assert ranks.rows.tolist() == [0, 3, 1, 4, 2]
    old = [np.array([2, GONE, 0], np.uint32), np.array([], np.uint32), np.array([1], np.uint32)]
    assert ranks.renumbered(old).tolist() == [4, GONE, 0, 3]
    monkeypatch.setattr(union, "BLOCK_ROWS", 3)
    pieces = [(rows.tolist(), parts) for rows, parts in ranks.pieces(2)]
    assert pieces == [
        ([0, 2, 1], [slice(0, 2), slice(0, 0), slice(0, 1)]),
        ([1, 0], [slice(2, 3), slice(0, 0), slice(1, 2)]),
    ]


def test_rows_of_one_order_are_not_brought_together(tmp_path: Path) -> None:
    members = stems(tmp_path, [[Doc(order=5), Doc(order=6)], [Doc(order=6, reason="language")]])
    assert write_union(tmp_path / "u", members, dtype=DTYPE) == {}
    assert list(tmp_path.glob("u.*")) == []


@pytest.mark.slow
def test_members_with_rows_of_one_order_stay_segments(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "write_union", lambda *_, **__: {})
    small_groups(monkeypatch)
    build(MODULE, options(corpus, tmp_path / "apart"))
    monkeypatch.undo()
    build(MODULE, options(corpus, tmp_path / "plain"))
    assert dataset(tmp_path / "apart") == dataset(tmp_path / "plain")


# --- which segments


def planned(source: str = "s", *, longest: int = 20) -> PlannedSegment:
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
        sieved=Sieved(texts=8),
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
    segments = [planned("a") for _ in range(5)] + [planned("b") for _ in range(4)]
    runs = list(group.neighbours(segments))
    assert [len(run) for run in runs] == sizes
    assert [each for run in runs for each in run] == segments


def test_a_group_is_the_sum_of_its_members() -> None:
    found = group.union_of([planned(longest=5), planned(longest=9)], name="g")
    assert (found.stem, found.folder, found.path(Path("w"))) == ("g", "group", Path("w/group/g"))
    assert (found.rows, found.documents, found.tokens, found.longest) == (20, 16, 160, 9)
    assert (found.rejects, found.held_bytes, found.sieved) == (2, 6, Sieved(texts=16))


# --- ranges of very large corpora


@pytest.mark.parametrize(
    ("rows", "ranges"),
    [
        (512 * ROWS_PER_TASK, 512),
        (512 * ROWS_PER_TASK + 1, 512),
        (512 * MOST_GROWTH * ROWS_PER_TASK, 512),
        (512 * MOST_GROWTH * ROWS_PER_TASK + 1, 1024),
        (33_000_000_000, 4096),
    ],
)
def test_tasks_grow_before_ranges_become_too_many(rows: int, ranges: int) -> None:
    assert num_ranges(rows) == ranges


@pytest.mark.parametrize("files", [1, 2, 8, 64])
@pytest.mark.parametrize("shards", [1, 3, 8, 100])
def test_a_shard_is_told_the_drop_files_of_its_range(files: int, shards: int) -> None:
    dedup = Deduplicated(drops=tuple(str(at) for at in range(files)))
    ranges = [Range.of(at, files) for at in range(files)]
    for index in range(shards):
        within = Range.of(index, shards)
        meant = [
            str(at)
            for at, each in enumerate(ranges)
            if each.low < within.high and within.low < each.high
        ]
        assert list(dedup.drops_within(within)) == meant
    assert len(dedup.drops_within(EVERYTHING)) == files
    assert Deduplicated().drops_within(EVERYTHING) == ()
