"""When a file of a watch is complete, what becomes of it, and what is remembered."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.sources import watched_corpora
from pipelines.inputs.files import InputFile
from pipelines.map.arrivals import (
    BACK,
    CHANGED,
    GROWING,
    Arrivals,
    Assignment,
    Memory,
    Sighting,
    WatchJob,
    prepare_assignment,
)
from pipelines.map.chain import Chain
from pipelines.map.notes import ODD, Control, Failed, Notes, file_key, look_of
from shards.errors import UserError
from tests.pipelines.inline import JobMaker
from tests.pipelines.privileges import without_privileges
from tests.pipelines.runs import MODULE, page, small, write_wudao

SETTLE = 10.0
NOW = 2_000_000_000.0


@dataclass
class Place:
    """A folder that is watched, and the steps of the watch."""

    folder: Path
    arrivals: Arrivals
    notes: Notes
    seen: dict[str, Any]
    memory: dict[str, Memory] = field(default_factory=dict)

    def write(self, name: str, *numbers: int, at: float = NOW) -> Path:
        path = write_wudao(self.folder / name, [page(number) for number in numbers or (1,)])
        os.utime(path, (at, at))
        return path

    def tell(self, **changes: Any) -> None:
        control = Control(watch="w", job=0, beat=1, number=0, ending=False)
        self.notes.tell(replace(control, **changes))

    def turn(self, now: float) -> list[Assignment]:
        """One look, and the judgement of what it finds."""
        taken = []
        for key, sighting in self.arrivals.look(now):
            self.memory[key], tasks = self.arrivals.judge(key, sighting, self.memory.get(key))
            taken += tasks
        return taken


@pytest.fixture
def place(make_job: JobMaker, small_chain: Chain, tmp_path: Path) -> Place:
    folder = tmp_path / "in"
    first = write_wudao(folder / "part-first.json", [page(0)])
    options = small(tmp_path / "out", folder, settle=SETTLE)
    job, _ = make_job(options)
    first.unlink()
    folders, _ = watched_corpora(MODULE, options)
    seen: dict[str, Any] = {}
    arrivals = Arrivals(
        WatchJob(
            job=job, facts=small_chain.facts, source=folders, watch="w", seen=lambda _: dict(seen)
        )
    )
    place = Place(folder, arrivals, Notes(job.work), seen)
    place.tell()
    return place


def key_of(path: Path) -> str:
    return file_key("wudao", path.name)


def test_a_file_is_taken_once_it_has_not_changed_for_a_while(place: Place) -> None:
    path = place.write("part-1.json", at=NOW)
    assert place.turn(NOW) == []
    assert place.turn(NOW + SETTLE - 1) == []
    (assignment,) = place.turn(NOW + SETTLE)
    assert assignment.task.split.relative == "part-1.json"
    assert assignment.arrived == NOW
    assert place.turn(NOW + SETTLE + 1000) == []
    note = place.notes.taken(key_of(path))
    assert note is not None
    assert (note.arrived, note.tasks) == (NOW, (assignment.task,))


def test_a_file_renamed_into_place_with_an_older_time_is_taken_at_once(place: Place) -> None:
    place.write("part-1.json", at=NOW - SETTLE)
    assert len(place.turn(NOW)) == 1


def test_a_file_that_grows_is_not_taken_until_it_stops(place: Place) -> None:
    place.write("part-1.json", 1, at=NOW)
    assert place.turn(NOW) == []
    place.write("part-1.json", 1, 2, at=NOW + 9)
    assert place.turn(NOW + 9) == []
    assert place.turn(NOW + 18) == []
    (assignment,) = place.turn(NOW + 19)
    assert assignment.arrived == NOW


def test_a_file_without_a_time_is_judged_by_when_it_was_seen(place: Place) -> None:
    path = place.write("part-1.json")
    file = InputFile(
        source="wudao", path=str(path), relative="part-1.json", bytes=9, mtime_ns=0, etag="a"
    )
    key = key_of(path)
    memory, tasks = place.arrivals.judge(key, Sighting(file=file, at=NOW), None)
    assert tasks == []
    other = replace(file, etag="b")
    memory, tasks = place.arrivals.judge(key, Sighting(file=other, at=NOW + 11), memory)
    assert tasks == []
    assert place.arrivals.judge(key, Sighting(file=other, at=NOW + 21), memory)[0].taken


def test_many_files_are_handed_on_some_at_a_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.map.arrivals.MOST_AT_ONCE", 3)
    for number in range(7):
        place.write(f"part-{number}.json", at=NOW)
    seen = [[sighting for _, sighting in place.arrivals.look(NOW + at)] for at in range(4)]
    assert list(map(len, seen)) == [3, 3, 1, 0]
    assert {(sighting.since, sighting.at) for sighting in seen[2]} == {(NOW, NOW + 2)}


@pytest.mark.parametrize("name", [".part-1.json", "part-1.json.tmp", "part-1.json.part"])
def test_a_name_that_says_unfinished_is_left_alone(place: Place, name: str) -> None:
    place.write(name, at=NOW - 1000)
    (place.folder / "part-empty.json").touch()
    assert [*place.arrivals.look(NOW)] == []


def test_a_file_that_keeps_growing_is_named_after_an_hour_and_then_hourly(place: Place) -> None:
    path = place.write("part-1.json", at=NOW)
    told = []
    for minute in range(0, 150, 5):
        now = NOW + 60 * minute
        os.utime(path, (now, now))
        assert place.turn(now) == []
        note = place.notes.odd(key_of(path))
        if note is not None and note.file.mtime_ns not in told:
            assert note.why == GROWING
            told.append(note.file.mtime_ns)
    assert [mtime / 1e9 - NOW for mtime in told] == [3600, 7200]


def test_a_file_that_changes_after_it_was_taken_is_reported_not_taken(place: Place) -> None:
    path = place.write("part-1.json", at=NOW - 60)
    assert len(place.turn(NOW)) == 1
    place.write("part-1.json", 1, 2, at=NOW + 5)
    assert place.turn(NOW + 5) == []
    note = place.notes.odd(key_of(path))
    assert note is not None
    assert note.why == CHANGED


def test_files_of_the_dataset_are_left_out_and_reported_if_they_are_others_now(
    place: Place,
) -> None:
    path = place.write("part-1.json", at=NOW - 60)
    unknown = place.write("part-2.json", at=NOW - 60)
    ((key, sighting), *_) = place.arrivals.look(NOW)
    assert key == key_of(path)
    place.seen |= {key: sighting.look, key_of(unknown): None}
    place.tell(number=1)
    assert [*place.arrivals.look(NOW + 1000)] == []
    place.write("part-1.json", 1, 2, at=NOW + 2000)
    assert place.turn(NOW + 5000) == []
    note = place.notes.odd(key)
    assert note is not None
    assert note.why == BACK


def test_a_job_that_starts_anew_hands_out_again_what_was_noted(place: Place) -> None:
    place.write("part-1.json", at=NOW - 60)
    before = place.turn(NOW)
    place.memory.clear()  # as the state of an engine that is gone
    place.arrivals._shown.clear()
    assert place.turn(NOW + 1) == before
    assert place.turn(NOW + 1000) == []


def test_what_has_just_been_committed_is_not_taken_again(place: Place) -> None:
    path = place.write("part-1.json", at=NOW - 60)
    ((key, sighting),) = place.arrivals.look(NOW)
    memory, _ = place.arrivals.judge(key, sighting, None)
    place.notes.forget(key_of(path), "taken")
    late = replace(sighting, at=NOW + 500)
    place.seen[key] = sighting.look
    place.tell(number=1)
    assert place.arrivals.judge(key, late, memory) == (memory, [])


def test_what_was_committed_since_it_was_sighted_is_not_taken_by_a_job_without_memories(
    place: Place,
) -> None:
    place.write("part-a.json", at=NOW - 100)
    ((key, sighting),) = place.arrivals.look(NOW)
    place.seen[key] = look_of(sighting.file)
    place.tell(number=1)
    memory, tasks = place.arrivals.judge(key, sighting, None)
    assert (memory.taken, tasks) == (True, [])
    assert place.notes.taken(key) is None
    assert place.arrivals.forgets(key, memory)
    assert not place.arrivals.forgets("another", memory)


def test_a_file_whose_note_was_given_up_is_taken_again_when_it_is_back(place: Place) -> None:
    path = place.write("part-1.json", at=NOW - 60)
    ((key, sighting),) = place.arrivals.look(NOW)
    memory, before = place.arrivals.judge(key, sighting, None)
    place.notes.forget(key_of(path), "taken")
    assert place.arrivals.judge(key, sighting, memory)[1] == before
    assert place.notes.taken(key) is not None


def test_notes_of_another_watch_are_handed_out_under_the_names_of_this_one(place: Place) -> None:
    path = place.write("part-1.json", at=NOW - 60)
    ((key, sighting),) = place.arrivals.look(NOW)
    (before,) = place.arrivals.judge(key, sighting, None)[1]
    note = place.notes.taken(key_of(path))
    assert note is not None
    place.notes.write(key, replace(note, tasks=(replace(before.task, name="f" * 24),)))
    assert place.arrivals.judge(key, sighting, None)[1] == [before]
    assert place.notes.taken(key) == note


def test_what_cannot_be_taken_is_reported_until_it_is_mended_and_hides_nothing(
    place: Place,
) -> None:
    bad = place.write("part-1.json", at=NOW - 60)
    place.write("part-2.json", at=NOW - 60)
    hidden = place.write("closed/part-3.json", at=NOW - 60)
    link = place.folder / "part-4.json"
    link.symlink_to("nothing")
    bad.chmod(0)
    hidden.parent.chmod(0)
    with without_privileges():
        (assignment,) = place.turn(NOW)
        assert place.turn(NOW + 1) == []
    assert assignment.task.split.relative == "part-2.json"
    keys = {file_key("wudao", name): name for name in ("part-1.json", "closed/", "part-4.json")}
    notes = {keys[key]: place.notes.odd(key) for key in place.notes.names()[ODD]}
    assert {name: note.why for name, note in notes.items() if note} == {
        "part-1.json": "may not be read: check its permissions",
        "closed/": "may not be searched: check its permissions",
        "part-4.json": "is a link to nothing, where there is nothing",
    }
    bad.chmod(0o600)
    hidden.parent.chmod(0o700)
    assert len(place.turn(NOW + 2)) == 2
    assert place.notes.names()[ODD] == {file_key("wudao", "part-4.json")}
    link.unlink()
    assert place.turn(NOW + 3) == []
    assert place.notes.names()[ODD] == set()


def test_a_folder_that_was_mended_between_two_processes_is_forgotten(place: Place) -> None:
    hidden = place.write("closed/part-3.json", at=NOW - 60)
    hidden.parent.chmod(0)
    with without_privileges():
        assert place.turn(NOW) == []
        again = Arrivals(place.arrivals._job)
        assert [*again.look(NOW + 1)] == []
        assert place.notes.names()[ODD] == {file_key("wudao", "closed/")}
    hidden.parent.chmod(0o700)
    assert len([*Arrivals(place.arrivals._job).look(NOW + 2)]) == 1
    assert place.notes.names()[ODD] == set()


def test_a_folder_that_may_not_be_listed_at_all_is_trouble(place: Place) -> None:
    place.write("part-1.json", at=NOW - 60)
    place.folder.chmod(0)
    with without_privileges():
        assert place.turn(NOW) == []
    assert place.notes.read_trouble().endswith("/in may not be searched: check its permissions.")
    place.folder.chmod(0o700)
    assert len(place.turn(NOW + 1)) == 1
    assert place.notes.read_trouble() == ""


def test_any_error_at_one_file_is_noted_for_that_file(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.write("part-1.json", at=NOW - 60)

    def broken(*_: Any) -> None:
        raise ValueError("what no reader expects")

    monkeypatch.setattr("pipelines.map.arrivals.check_head", broken)
    assert place.turn(NOW) == []
    failed = place.notes.failed(key_of(path))
    assert failed is not None
    assert failed.message == "ValueError: what no reader expects"


def test_what_is_committed_meanwhile_is_neither_mapped_nor_failed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.write("part-1.json", at=NOW - 60)
    (assignment,) = place.turn(NOW)
    place.notes.forget(key_of(path), "taken")
    monkeypatch.setattr("pipelines.map.mapper.Mapper.map", lambda *_: pytest.fail("mapped"))
    prepare_assignment(place.arrivals._job.job)(assignment)
    assert place.arrivals.finished(assignment).counts == {"tasks": 1}


def test_a_file_that_cannot_be_cut_is_noted_and_tried_again_when_it_changes(place: Place) -> None:
    path = place.folder / "part-1.json"
    path.write_text("no JSON")
    os.utime(path, (NOW - 60, NOW - 60))
    assert place.turn(NOW) == []
    failed = place.notes.failed(key_of(path))
    assert failed is not None
    assert "part-1.json" in failed.message
    place.write("part-1.json", at=NOW + 5)
    assert place.turn(NOW + 5) == []
    assert place.notes.failed(key_of(path)) is None
    assert len(place.turn(NOW + 20)) == 1


def test_a_task_that_failed_is_handed_out_again_after_a_pause_that_grows(place: Place) -> None:
    path = place.write("part-1.json", at=NOW - 60)
    (assignment,) = place.turn(NOW)
    sighting = Sighting(file=next(place.arrivals.look(NOW + 1e6))[1].file, at=NOW)
    place.notes.write(key_of(path), Failed(message="away", times=3, at=NOW))
    memory = place.memory[key_of(path)]
    early, late = (replace(sighting, at=NOW + seconds) for seconds in (239, 241))
    assert place.arrivals.judge(key_of(path), early, memory)[1] == []
    assert place.arrivals.judge(key_of(path), late, memory)[1] == [assignment]
    much_later = replace(sighting, at=NOW + 1e6)
    assert place.arrivals.judge(key_of(path), much_later, memory)[1] == []  # it may still run
    assert place.arrivals.fail(assignment, "away again")
    failed = place.notes.failed(key_of(path))
    assert failed is not None
    assert (failed.times, failed.message) == (4, "away again")


def test_storage_that_is_away_is_no_reason_to_fail_or_to_end(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("part-1.json", at=NOW - 60)

    def away(*_: Any) -> None:
        raise UserError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.map.notes.write_json", away)
        assert place.turn(NOW) == []
        patch.setattr("pipelines.map.notes.read_json", away)
        assert not place.arrivals.ended()
        assert [*place.arrivals.look(NOW + 1)] == []
    assert len(place.turn(NOW + 1000)) == 1


def test_inputs_that_cannot_be_listed_are_told_until_they_can(place: Place) -> None:
    place.write("part-1.json", at=NOW - 60)
    place.folder.rename(place.folder.with_name("elsewhere"))
    assert place.turn(NOW) == []
    assert str(place.folder) in place.notes.read_trouble()
    place.folder.with_name("elsewhere").rename(place.folder)
    assert len(place.turn(NOW + 1)) == 1
    assert place.notes.read_trouble() == ""


def test_the_steps_end_with_the_watch_or_if_its_driver_is_silent(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not place.arrivals.ended()
    place.tell(ending=True)
    assert place.arrivals.ended()
    place.tell(watch="another")
    assert place.arrivals.ended()
    place.tell(job=1)
    assert place.arrivals.ended()
    place.tell(beat=2)
    assert not place.arrivals.ended()
    monkeypatch.setattr("pipelines.map.arrivals.SILENT", -1.0)
    assert place.arrivals.ended()


def test_what_is_assigned_is_mapped_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("part-1.json", *range(5), at=NOW - 60)
    (assignment,) = place.turn(NOW)
    run = prepare_assignment(place.arrivals._job.job)
    run(assignment)
    made = place.arrivals.finished(assignment).counts
    assert made["records kept"] == 5
    assert made["tokens out"] > 5
    monkeypatch.setattr("pipelines.map.mapper.Mapper.map", lambda *_: pytest.fail("mapped twice"))
    run(assignment)


def test_a_note_of_another_version_counts_as_none(place: Place) -> None:
    path = place.write("part-1.json", at=NOW - 60)
    place.turn(NOW)
    (place.notes.folder / f"{key_of(path)}.taken.json").write_text("{}")
    assert place.notes.taken(key_of(path)) is None
    file = next(place.arrivals.look(NOW + 1e6))[1].file
    assert look_of(file)[0] == path.stat().st_size
