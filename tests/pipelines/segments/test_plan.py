from pathlib import Path

import pytest

from pipelines.segments.audit import Tally
from pipelines.segments.plan import Plan, PlannedSegment, load_plan, task_name
from pipelines.segments.segment import Segment, SieveCounts
from shards.errors import DamageError
from shards.storage.files import FileEntry
from tests.pipelines.made_segments import Doc, write_segments


def test_a_plan_is_loaded_by_its_name(tmp_path: Path) -> None:
    plan = write_segments(tmp_path, [[Doc(order=1)], [Doc(order=2)]], sources=["b", "a"])
    assert load_plan(tmp_path, plan.name) == plan
    assert plan.sources == ("a", "b")
    assert (plan.numbers("a"), plan.numbers("b"), plan.numbers("c")) == ([1], [0], [])


def test_different_plans_have_different_names(tmp_path: Path) -> None:
    one = write_segments(tmp_path, [[Doc(order=1)], [Doc(order=2)]])
    reversed_plan = Plan(
        generation=one.generation,
        fingerprint=one.fingerprint,
        dtype=one.dtype,
        texts=one.texts,
        segments=one.segments[::-1],
    )
    assert reversed_plan.name != one.name


def test_a_missing_plan_is_named_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(DamageError, match=r"plan/nothing\.json is missing"):
        load_plan(tmp_path, "nothing")


def test_a_planned_segment_is_a_segment_in_short() -> None:
    entry = FileEntry(bytes=7, crc32c=0)
    segment = Segment(
        stem="s",
        documents=5,
        tokens=40,
        longest=9,
        rejects=1,
        fanned_out=0,
        tallies=(
            Tally(verdict="kept", reason="", rows=5, bytes=1),
            Tally(verdict="quarantined", reason="nul", rows=1, bytes=1),
        ),
        files={"audit": entry, "documents": FileEntry(bytes=9, crc32c=0), "rejects": entry},
        sieved=SieveCounts(texts=5),
    )
    planned = PlannedSegment.of(segment, "web")
    assert planned == PlannedSegment(
        stem="s",
        source="web",
        rows=6,
        documents=5,
        tokens=40,
        longest=9,
        rejects=1,
        held_bytes=7,
        table_bytes=9,
        sieved=SieveCounts(texts=5),
    )
    assert planned.path(Path("work")) == Path("work/map/s")


def test_the_name_of_a_task_depends_on_all_its_parts() -> None:
    names = [task_name("dedup", "p", 1), task_name("dedup", "p", 2), task_name("merge", "p", 1)]
    assert len(set(names)) == 3
    assert task_name("dedup", "p", 1) == names[0]
    assert len(names[0]) == 24
