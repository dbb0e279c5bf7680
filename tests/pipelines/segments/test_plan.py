from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.segments.audit import Tally
from pipelines.segments.plan import Earlier, Plan, PlannedSegment, load_plan, task_name
from pipelines.segments.segment import Segment, SieveCounts
from shards.errors import DamageError, UserError
from shards.manifest import Generation, TableEntry
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


def generation(*names: str) -> Generation:
    """A generation with these signature tables."""
    empty: dict[str, Any] = dict.fromkeys(("inputs", "audit", "rejects"), ())
    return Generation(
        number=1,
        name="g0001-aa",
        fingerprint="",
        sources={},
        signatures=tuple(
            TableEntry(path=f"g0001-aa/signatures/{name}.arrow", rows=1, bytes=1, crc32c=0)
            for name in names
        ),
        accounting={},
        **empty,
    )


def test_an_earlier_generation_is_its_signature_tables_by_kind_and_number() -> None:
    names = ["exact-00001", "exact-00000", "slots-00000"]
    names += [f"band-{band:02}-{number:05}" for number in (1, 0) for band in range(14)]
    found = Earlier.of(generation(*names), dedup="minhash")
    where = "g0001-aa/signatures"
    assert found.exact == (f"{where}/exact-00000.arrow", f"{where}/exact-00001.arrow")
    assert len(found.bands) == 14
    assert found.bands[11] == (f"{where}/band-11-00000.arrow", f"{where}/band-11-00001.arrow")
    assert found.slots == (f"{where}/slots-00000.arrow",)


def test_near_duplicates_need_bands_in_every_earlier_generation() -> None:
    older = generation("exact-00000")
    assert Earlier.of(older, dedup="exact").bands == ()
    with pytest.raises(UserError, match=r"g0001-aa .*no bands and slots.*--overwrite"):
        Earlier.of(older, dedup="minhash")


def test_a_plan_with_earlier_generations_is_another_plan(tmp_path: Path) -> None:
    alone = write_segments(tmp_path, [[Doc(order=1)]])
    tables = ("band-00-00000", "exact-00000", "slots-00000")
    earlier = Earlier.of(generation(*tables), dedup="minhash")
    after = replace(alone, earlier=(earlier,))
    after.save(tmp_path)
    assert load_plan(tmp_path, after.name).earlier == (earlier,)
    assert after.name != alone.name


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
