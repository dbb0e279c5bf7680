import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipelines.map.attempts import (
    JUDGING,
    MOST_POISON,
    READING,
    WRITING,
    AttemptPosition,
    begin_attempt,
    death_advice,
    died_before,
    forget,
)
from pipelines.readers.record import Damage, Record
from shards.errors import UserError
from shards.storage.files import map_bytes
from shards.storage.remote import AnyPath, RemotePath


@pytest.fixture(params=["disk", "url"])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyPath]:
    if request.param == "disk":
        yield tmp_path
        return
    yield RemotePath("memory://bucket/work")
    MemoryFileSystem().store.clear()


def die(work: AnyPath, *positions: AttemptPosition, task: str = "t", run: str = "r") -> None:
    """Leave the note of an attempt that died."""
    with (
        suppress(KeyboardInterrupt),
        begin_attempt(work, task, run=run, skip_poison=True, description="map of x") as attempt,
    ):
        for position in positions:
            attempt.note(position)
        assert attempt.file
        note = map_bytes(attempt.file).tobytes()
        raise KeyboardInterrupt
    if isinstance(attempt.file, Path):
        attempt.file.write_bytes(note)
    else:
        attempt.file.write(note)


def judging(start: int, end: int, records: int) -> AttemptPosition:
    return AttemptPosition(doing=JUDGING, start=start, end=end, records=records)


def test_a_full_disk_is_told_and_counts_as_no_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_text(path: Path, _: str) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "?")

    monkeypatch.setattr(Path, "write_text", write_text)
    attempt = begin_attempt(tmp_path, "t", run="r", skip_poison=False, description="x")
    with pytest.raises(UserError, match=r"no space left on the disk that holds"), attempt:
        pass
    assert not died_before(tmp_path)


def test_an_attempt_that_ends_leaves_no_note(work: AnyPath) -> None:
    with begin_attempt(work, "t", run="r", skip_poison=False, description="x") as first:
        assert died_before(work)
        assert first.deaths == []
    assert not died_before(work)
    with (
        pytest.raises(ValueError, match="bad"),
        begin_attempt(work, "t", run="r", skip_poison=False, description="x"),
    ):
        raise ValueError("bad")
    assert not died_before(work)


def test_the_second_death_points_to_a_batch_and_the_third_to_a_record(work: AnyPath) -> None:
    items = [Record(offset, 10, {}, b"0123456789") for offset in range(0, 60, 10)]
    die(work, judging(0, 60, 6))
    assert death_advice(work, "t", run="r") == ""  # the first attempt notes no position
    die(work, judging(0, 30, 3), judging(30, 60, 3))
    assert "It died judging 3 records from 30 to 60 (" in death_advice(work, "t", run="r")
    with begin_attempt(work, "t", run="r", skip_poison=True, description="x") as third:
        assert [len(step) for step in third.steps(items)] == [3, 1, 1, 1]
    assert not died_before(work)  # the split is finished


def test_poison_comes_as_damage_if_it_is_to_be_skipped(work: AnyPath) -> None:
    items = [Record(offset, 10, {}, b"0123456789") for offset in (0, 10, 20)]
    die(work)
    die(work, judging(0, 30, 3))
    die(work, judging(10, 20, 1))
    with begin_attempt(work, "t", run="r", skip_poison=True, description="x") as next_one:
        assert not next_one.poison, "one death may be due to the memory that others take"
    die(work)
    die(work, judging(0, 30, 3))
    die(work, judging(10, 20, 1))
    die(work, judging(10, 20, 1))
    with begin_attempt(work, "t", run="r", skip_poison=True, description="x") as next_one:
        steps = [item for step in next_one.steps(items) for item in step]
        assert steps == [items[0], Damage(10, 10, "poison", b"0123456789"), items[2]]
        assert next_one.poison == {(10, 20)}
    die(work)
    die(work, judging(0, 30, 3))
    die(work, judging(10, 20, 1))
    die(work, judging(10, 20, 1))
    with (
        pytest.raises(UserError, match=r"^4 processes died .* at the map of x\. It died judging t"),
        begin_attempt(work, "t", run="r", skip_poison=False, description="map of x"),
    ):
        pass


def test_notes_of_other_runs_and_tasks_do_not_count(work: AnyPath) -> None:
    task, other, run = "a" * 24, "b" * 24, "c" * 32
    die(work, task=task, run="d" * 32)
    die(work, task=other, run=run)
    with begin_attempt(work, task, run=run, skip_poison=False, description="x") as first:
        assert first.deaths == []
    assert died_before(work)
    forget(work)
    assert not died_before(work)


@pytest.mark.parametrize("doing", [READING, WRITING])
def test_a_split_that_dies_reading_or_writing_is_not_tried_for_ever(
    work: AnyPath, doing: str
) -> None:
    position = AttemptPosition(doing=doing, start=5, end=5)
    die(work)
    die(work, position)
    die(work, position)
    with (
        pytest.raises(UserError, match=f"It died {doing} .* 5 "),
        begin_attempt(work, "t", run="r", skip_poison=True, description="x"),
    ):
        pass


def test_too_much_poison_is_refused(tmp_path: Path) -> None:
    for offset in range(MOST_POISON + 2):
        die(tmp_path, judging(offset, offset + 1, 1))
    with (
        pytest.raises(
            UserError, match=r"more than 100 records of the map of x .* the last one at 1"
        ),
        begin_attempt(tmp_path, "t", run="r", skip_poison=True, description="map of x"),
    ):
        pass


def test_a_note_cut_short_is_a_death_without_position(tmp_path: Path) -> None:
    die(tmp_path)
    (note,) = (tmp_path / "attempts").iterdir()
    os.truncate(note, 5)
    with begin_attempt(tmp_path, "t", run="r", skip_poison=False, description="x") as second:
        assert second.deaths == [AttemptPosition()]
