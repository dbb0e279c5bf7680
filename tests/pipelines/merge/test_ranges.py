"""Ranges: a dataset has the same bytes whether its groups were cut before merge or not."""

import json
import shutil
from pathlib import Path

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
from tests.pipelines.made_segments import (
    DTYPE,
    distinct_texts,
    equal_texts,
    exact_dedup,
    write_segments,
)
from tests.pipelines.merge.killing import check_goes_on
from tests.pipelines.merge.test_group import (
    KINDS,
    MODULE,
    corpus,
    dataset,
    figures,
    options,
    small_groups,
)

__all__ = ["corpus"]


@pytest.mark.parametrize(
    ("segments", "shards", "cut"),
    [
        (249, 2048, 1),  # 3 TB
        (8253, 65_536, 128),  # 100 TB
        (10, 3, 1),
        (9, 0, 1),
    ],
)
def test_a_cut_follows_from_segments_and_shards(segments: int, shards: int, cut: int) -> None:
    for remote in (False, True):
        assert choose_cut(segments, shards, rows=4e6 * segments, remote=remote) == cut


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
    small_groups(monkeypatch, rows=14)
    monkeypatch.setattr(ranges, "choose_cut", lambda *_, **__: 4)
    build(MODULE, options(corpus, merged, **KINDS[kind]))
    assert dataset(merged) == dataset(plain)
    assert figures(merged) == figures(plain)
    tasks = json.loads((merged / "report.json").read_text())["tasks"]["ranges"]["all"]
    assert len(list((merged / ".work" / "ranges").glob("*.tokens"))) == tasks > 8


KILLS = [
    ("ranges", r"\.work/ranges/.*\.audit$", 1),
    ("group", r"\.work/group/.*\.tokens$", 3),
    ("ranges", r"\.work/ranges/.*\.json$", 3),
    ("group", r"\.work/group/.*\.json$", 2),
    ("ranges", r"\.work/plan/", 3),
    ("group", r"\.work/plan/", 2),
    ("group", r"\.work/dedup/.*\.json$", 1),
    ("ranges", r"\.work/merge/.*\.json$", 2),
]
"""The phase whose tasks are finished or not, and the n-th file that is about to get its name."""


@pytest.mark.slow
@pytest.mark.parametrize("kill", a_few(KILLS, of_each=3))
def test_killed_at_a_group_or_range_the_same_command_goes_on(
    reference: Path, tmp_path: Path, kill: tuple[str, str, int]
) -> None:
    phase, *at = kill
    output = tmp_path / "out"
    says = check_goes_on(reference, output, at=(str(at[0]), int(at[1])), phase=phase)
    assert f"{'map' if phase == 'group' else 'group'} 100 %" not in says
    assert dataset(output) == dataset(reference)
