import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from pipelines.engine.phases import Phases, prepare_unfinished
from pipelines.engine.runner import Runner, Work
from shards.errors import DamageError, UserError
from shards.records import sealed
from shards.storage.files import write_json


@dataclass(frozen=True, kw_only=True)
class Task:
    name: str


@dataclass(frozen=True, kw_only=True)
class Result:
    value: int


class Here:
    """A runner without Beam, that remembers what it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, tasks: Sequence[Task], prepare: Callable[[Any], Work], argument: Any) -> None:
        work = prepare(argument)
        for task in tasks:
            self.ran.append(task.name)
            work(task)


TASKS = [Task(name=name) for name in "abc"]


def leave(folder: Path, name: str, value: int) -> None:
    write_json(folder / f"{name}.json", sealed(Result(value=value)))


def prepare(folder: Path) -> Work:
    return lambda task: leave(folder, task.name, 1)


def finish(
    work: Path, here: Here, prepare: Callable[[Any], Work] = prepare, *, least: int = 0
) -> dict[str, Result]:
    phases = Phases(work, cast("Runner", here))
    return phases.finish(
        "dedup",
        TASKS,
        prepare,
        work / "dedup",
        kind=Result,
        complete=lambda record: record.value >= least,
    )


def test_all_tasks_run_and_their_records_come_back_in_order(tmp_path: Path) -> None:
    here = Here()
    found = finish(tmp_path, here)
    assert list(found.items()) == [(name, Result(value=1)) for name in "abc"]
    assert here.ran == ["a", "b", "c"]


def test_finished_tasks_are_left_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    leave(tmp_path / "dedup", "b", 7)
    here = Here()
    with caplog.at_level(logging.INFO, "corpusmill"):
        found = finish(tmp_path, here)
    assert here.ran == ["a", "c"]
    assert found["b"] == Result(value=7)
    assert caplog.messages == ["dedup: 1 of 3 tasks were finished before"]
    again = Here()
    assert finish(tmp_path, again) == found
    assert again.ran == []


def test_a_task_whose_files_are_gone_runs_again(tmp_path: Path) -> None:
    for name, value in (("a", 0), ("b", 5)):
        leave(tmp_path / "dedup", name, value)
    here = Here()
    assert finish(tmp_path, here, least=1)["a"] == Result(value=1)
    assert here.ran == ["a", "c"]


def test_a_task_whose_record_was_changed_runs_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        leave(tmp_path / "dedup", name, 5)
    path = tmp_path / "dedup" / "b.json"
    path.write_text(path.read_text().replace("5", "6"))
    here = Here()
    assert finish(tmp_path, here)["b"] == Result(value=1)
    assert here.ran == ["b", "c"]
    assert f"{path} was changed, or another version wrote it" in caplog.text


def test_the_old_record_of_a_task_goes_before_it_runs(tmp_path: Path) -> None:
    """Else a run that ends here would find it finished, and progress would count it at once."""
    leave(tmp_path / "dedup", "a", 0)

    def failing(folder: Path) -> Work:
        assert not (folder / "a.json").exists()
        raise UserError("ended")

    with pytest.raises(UserError, match="ended"):
        finish(tmp_path, Here(), failing, least=1)
    assert not (tmp_path / "dedup" / "a.json").exists()


def test_a_task_that_leaves_no_record_is_told(tmp_path: Path) -> None:
    with pytest.raises(DamageError, match=r"a\.json is missing"):
        finish(tmp_path, Here(), lambda _: lambda _: None)


def test_the_time_of_a_phase_is_added_up(tmp_path: Path) -> None:
    phases = Phases(tmp_path, cast("Runner", Here()))
    folder = tmp_path / "map"
    phases.run("map", TASKS[:1], prepare, folder, weights=[5], done=0)
    first = phases.seconds["map"]
    phases.run("map", TASKS[1:], prepare, folder, weights=[5, 5], done=1)
    assert phases.seconds["map"] > first > 0
    phases.run("merge", [], prepare, folder, weights=[], done=3)
    assert set(phases.seconds) == {"map"}


def test_the_figures_of_the_phases_tell_what_was_done_before(tmp_path: Path) -> None:
    phases = Phases(tmp_path, cast("Runner", Here()))
    phases.run("map", TASKS, prepare, tmp_path / "map", weights=[5, 5, 5], done=2)
    phases.run("merge", [], prepare, tmp_path / "merge", weights=[], done=3)
    found = phases.figures()
    assert found["tasks"] == {
        "map": {"all": 5, "finished_before": 2},
        "merge": {"all": 3, "finished_before": 3},
    }
    assert list(found["seconds"]) == ["map"]
    assert found["elapsed"] >= found["seconds"]["map"]


def test_a_task_that_an_earlier_attempt_finished_is_left(tmp_path: Path) -> None:
    """As when an engine that lost a machine hands out all tasks of a job again."""
    done: list[str] = []

    def make(folder: Path) -> Work:
        def work(task: Task) -> None:
            done.append(task.name)
            write_json(folder / f"{task.name}.json", {"value": 1})

        return work

    for _ in range(2):
        work = prepare_unfinished((tmp_path, make, tmp_path))
        for task in TASKS:
            work(task)
    assert done == ["a", "b", "c"]
