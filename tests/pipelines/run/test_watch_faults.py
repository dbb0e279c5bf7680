"""What goes wrong around the driver of a watch: files that go, notes that are late, errors."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from pipelines.corpus.sources import Corpus, watched_corpora
from pipelines.engine.prism import Engine
from pipelines.map.arrivals import Arrivals, Sighting, prepare_assignment
from pipelines.map.notes import FAILED, ODD, TAKEN, Failed, file_key
from pipelines.run import watch as watches
from pipelines.run.ledger import Ledger
from pipelines.run.watch import Maker, Watch
from shards.errors import UserError
from shards.manifest import read_manifest
from shards.storage.files import read_json
from tests.pipelines.privileges import without_privileges
from tests.pipelines.runs import MODULE, page, small, write_wudao

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("plain")]


@dataclass
class Place:
    """A watch without an engine: its steps run one after the other."""

    folder: Path
    watch: Watch
    arrivals: Arrivals

    def write(self, name: str, *numbers: int) -> Path:
        path = write_wudao(self.folder / name, [page(number) for number in numbers or (1,)])
        os.utime(path, (1e9, 1e9))
        return path

    def sightings(self) -> list[tuple[str, Sighting]]:
        return [*self.arrivals.look(time.time())]

    def take(self, *, mapped: bool = True) -> None:
        """What the engine does with the files that are there; then the driver looks."""
        for key, sighting in self.sightings():
            self.judge(key, sighting, mapped=mapped)
        self.watch._read_notes()

    def judge(self, key: str, sighting: Sighting, *, mapped: bool = True) -> int:
        _, tasks = self.arrivals.judge(key, sighting, None)
        run = prepare_assignment(self.watch._stream.job)
        for task in tasks if mapped else ():
            run(task)
            self.arrivals.finished(task)
        return len(tasks)

    def commit(self) -> None:
        self.watch._retry_at = 0.0
        self.watch._begin_generation()
        self.end()

    def end(self) -> None:
        if self.watch._generation is not None:
            self.watch._generation.join()
        self.watch._check_generation()

    @property
    def generations(self) -> list[list[str]]:
        if not (self.watch._output / "manifest.json").exists():
            return []
        manifest = read_manifest(self.watch._output)
        return [[entry.path for entry in made.inputs] for made in manifest.generations]


def opened(root: Path, **changes: Any) -> Place:
    folder = root / "in"
    folder.mkdir(exist_ok=True)
    given = {"watch": True, "workers": 1, "every": 0.0, "settle": 0.0, "dedup": "none", **changes}
    options = small(root / "out", folder, **given)
    folders, corpora = watched_corpora(MODULE, options)
    maker = Maker(Corpus(MODULE, options), corpora)
    with maker.build() as run:
        watch = Watch(run, maker, folders=folders, engine=cast(Engine, None))
    watch._learn()
    watch._write_control()
    return Place(folder, watch, Arrivals(watch._stream))


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr("pipelines.compiled.available", lambda: False)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return opened(tmp_path)


def key_of(name: str) -> str:
    return file_key("wudao", name)


def test_an_error_after_the_manifest_does_not_make_the_generation_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = watches.grow

    def grow(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        raise OSError(5, "Input/output error")

    place.write("part-1.json", 1, 2)
    place.take()
    monkeypatch.setattr(watches, "grow", grow)
    place.commit()
    monkeypatch.undo()
    assert (place.watch._number, place.watch._arrived) == (1, {})
    assert place.watch._notes.names()[TAKEN] == set()
    place.watch._retry_at = 0.0
    assert not place.watch._due()
    assert place.generations == [["part-1.json"]]


def test_a_late_note_of_a_committed_file_is_dropped_even_while_a_generation_is_made(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("part-1.json", 1, 2)
    late = place.sightings()
    place.arrivals._shown.clear()
    place.take()
    place.commit()
    monkeypatch.setattr(watches.Watch, "_being_made", lambda _: True)
    # A worker that has not heard of the commit.
    monkeypatch.setattr(place.arrivals, "_has", lambda _: False)
    for key, sighting in late:
        assert place.judge(key, sighting) == 1
    place.watch._read_notes()
    assert place.watch._ready() == {}
    assert not place.watch._notes.has(key_of("part-1.json"), TAKEN)
    assert [*(place.watch._work / "map").glob("*")] == []


def test_what_is_replaced_during_a_watch_is_not_committed_under_the_old_options(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    benchmark = tmp_path / "benchmark.txt"
    old, new = (f"{word} " * 40 for word in ("old", "new"))
    benchmark.write_text(old)
    place = opened(tmp_path, decontaminate=(str(benchmark),))
    place.write("part-1.json", 1, 2)
    place.take()
    benchmark.write_text(new)
    place.commit()
    assert place.generations == []
    assert "what --decontaminate names was replaced since the watch began" in caplog.text
    benchmark.write_text(old)
    place.commit()
    place.write("part-2.json", 3)
    place.take()
    benchmark.write_text(new)
    place.commit()
    assert place.generations == [["part-1.json"]]
    assert "holds a dataset made with other options: --decontaminate" in caplog.text


def test_a_mapped_file_that_is_deleted_is_committed_all_the_same(place: Place) -> None:
    path = place.write("part-1.json", *range(5))
    place.write("part-2.json", 9)
    place.take()
    path.unlink()
    place.commit()
    assert place.generations == [["part-1.json", "part-2.json"]]


def test_a_deleted_file_that_the_ledger_names_is_committed_from_its_notes(place: Place) -> None:
    path = place.write("part-1.json", 1, 2)
    place.take()
    Ledger(place.watch._output).name(1, [item.file for item in place.watch._arrived.values()])
    path.unlink()
    again = opened(place.folder.parent)
    again.watch._read_notes()
    again.commit()
    assert again.generations == [["part-1.json"]]


def test_a_file_deleted_before_it_was_mapped_is_given_up(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = place.write("part-1.json", 1, 2)
    place.write("part-2.json", 3)
    place.take(mapped=False)
    path.unlink()
    place.watch._find_lost()
    assert len(place.watch._arrived) == 2
    monkeypatch.setattr(watches, "LOST_AFTER", 0.0)
    for _ in range(2):
        place.watch._next_search = 0.0
        place.watch._find_lost()
    assert [item.file.relative for item in place.watch._arrived.values()] == ["part-2.json"]
    assert not place.watch._notes.has(key_of("part-1.json"), TAKEN)
    assert caplog.text.count(f"{path} was deleted before it was mapped") == 1


def test_what_cannot_be_read_is_in_the_report_of_the_generation(place: Place) -> None:
    place.write("part-1.json", 1, 2)
    place.write("part-2.json", 3)
    (place.folder / "part-3.json").symlink_to("nothing")
    ((key, sighting), _) = place.sightings()
    place.arrivals._report(key, sighting, watches.CHANGED)
    place.take()
    place.commit()
    (entry,) = read_json(place.watch._output / "report.json")["left_out"]
    assert (entry["path"], entry["why"][:10]) == ("part-3.json", "is a link ")
    place.watch._forget_others()
    assert place.watch._notes.names()[ODD] == set()


def test_a_file_in_a_folder_that_cannot_be_searched_now_is_not_given_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.write("sub/part-1.json", 1, 2)
    place.take(mapped=False)
    path.parent.chmod(0)
    monkeypatch.setattr(watches, "LOST_AFTER", 0.0)
    for _ in range(2):
        place.watch._next_search = 0.0
        with without_privileges():
            place.watch._find_lost()
    assert len(place.watch._arrived) == 1


def test_a_file_that_failed_and_is_deleted_is_given_up_at_once(place: Place) -> None:
    path = place.write("part-1.json", 1, 2)
    place.take(mapped=False)
    place.watch._notes.write(key_of(path.name), Failed(message="no", times=1, at=time.time()))
    place.watch._read_notes()
    path.unlink()
    place.watch._find_lost()
    assert place.watch._arrived == {}
    assert place.watch._notes.names()[FAILED] == set()


def test_a_failure_of_what_is_committed_or_given_up_is_forgotten(place: Place) -> None:
    place.watch._notes.write(key_of("part-9.json"), Failed(message="no", times=1, at=1.0))
    place.watch._read_notes()
    assert place.watch._notes.names()[FAILED] == set()
    place.watch._read_notes()
    assert place.watch._failed == set()


def test_a_file_that_failed_and_was_taken_anew_is_read_again(place: Place) -> None:
    path = place.write("part-1.json", 1, 2)
    key = key_of(path.name)
    place.take(mapped=False)
    place.watch._notes.write(key, Failed(message="no", times=1, at=time.time()))
    place.watch._read_notes()
    place.write("part-1.json", 1, 2, 3)
    place.watch._notes.forget(key, TAKEN, FAILED)
    place.arrivals._shown.clear()
    place.take()
    assert [item.file.bytes for item in place.watch._ready().values()] == [path.stat().st_size]


def test_notes_that_another_watch_cut_otherwise_are_taken_anew(place: Place) -> None:
    place.write("part-1.json", *range(200))
    place.take(mapped=False)
    other = opened(place.folder.parent, split_bytes=1000)
    other.watch._forget_others()
    assert other.watch._notes.names()[TAKEN] == set()


def test_the_driver_waits_for_the_names_that_the_new_watch_gives(place: Place) -> None:
    place.write("part-1.json", 1, 2)
    place.take(mapped=False)
    other = opened(place.folder.parent, keep_dropped=True)
    other.watch._forget_others()
    other.watch._read_notes()
    other.take()
    assert len(other.watch._ready()) == 1


def test_a_damaged_record_hides_no_other_file(place: Place) -> None:
    place.write("part-1.json", 1, 2)
    place.write("part-2.json", 3)
    for key, sighting in place.sightings():
        place.judge(key, sighting)
    (place.watch._work / "map").joinpath(
        sorted(path.name for path in (place.watch._work / "map").glob("*.json"))[0]
    ).write_text("{}")
    place.watch._read_notes()
    place.commit()
    assert place.generations == [["part-1.json", "part-2.json"]]


def test_trouble_with_looking_is_said_once_a_minute(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place.folder.rename(place.folder.with_name("away"))
    assert place.sightings() == []
    place.watch._submitted = 1.0
    monkeypatch.setattr(place.watch, "_keep_job", lambda: None)
    for _ in range(3):
        place.watch._turn()
    assert caplog.text.count("waiting: The input") == 1


def test_the_end_waits_for_storage_that_is_away(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("part-1.json", 1, 2)
    place.take()
    real, tries = Ledger.open_entry, []

    def away(ledger: Ledger, number: int) -> Any:
        tries.append(1)
        if len(tries) < 4:
            raise UserError("no storage")
        return real(ledger, number)

    monkeypatch.setattr(Ledger, "open_entry", away)
    place.watch._finish()
    assert place.generations == [["part-1.json"]]


def test_what_a_watch_remembers_of_odd_files_goes_with_their_notes(place: Place) -> None:
    path = place.write("part-1.json", 1)
    ((key, sighting),) = place.sightings()
    place.arrivals._report(key, sighting, watches.GROWING)
    place.watch._read_notes()
    assert [*place.watch._odd] == [key_of(path.name)]
    place.judge(key, sighting)
    place.watch._read_notes()
    assert (place.watch._odd, place.watch._growing) == ({}, set())


def test_a_second_signal_ends_the_process_while_it_holds_the_lock(tmp_path: Path) -> None:
    code = """
import signal, sys, os
from pathlib import Path
from pipelines.run.watch import _told_to_stop
from shards.storage.lock import locked
with locked(Path(sys.argv[1])):
    try:
        with _told_to_stop() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.is_set()
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        print("the lock is given back")
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stdout == ""
    assert done.stderr == "ended at once: what was taken is known to the next watch\n"


def test_told_to_end_during_a_commit_it_ends_after_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = watches.grow

    def slow(*arguments: Any, **named: Any) -> Any:
        time.sleep(0.5)
        return real(*arguments, **named)

    monkeypatch.setattr(watches, "grow", slow)
    place.write("part-1.json", 1, 2)
    place.take()
    place.watch._begin_generation()
    place.write("part-2.json", 3)
    place.take()
    place.watch._drain()
    assert place.generations == [["part-1.json"], ["part-2.json"]]
    assert not (place.watch._output / "ledger.json").exists()


class Endless:
    """A job that goes on when there is nothing left to do."""

    ended = False
    error = ""

    def cancel(self) -> None:
        """Note that it was asked for."""
        self.ended = True


def test_a_job_that_does_not_end_by_itself_is_not_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "QUIET", 0.0)
    job = Endless()
    monkeypatch.setattr(place.watch, "_job", job)
    place.write("part-1.json", 1, 2)
    place.take()
    place.watch._drain()
    assert job.ended
    assert place.generations == [["part-1.json"]]


def test_a_job_is_not_renewed_while_much_waits(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "RENEWED_AFTER", 0.0)
    monkeypatch.setattr(watches, "FEW_TASKS", 1)
    for number in (1, 2):
        place.write(f"part-{number}.json", number)
    place.take(mapped=False)
    assert not place.watch._job_is_old()
    place.take()
    assert place.watch._job_is_old()
