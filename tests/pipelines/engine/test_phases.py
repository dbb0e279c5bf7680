from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from pipelines.engine.phases import Phases, prepare_unfinished
from pipelines.engine.runner import Runner
from pipelines.engine.task import RunTask
from shards.errors import UserError
from shards.records import sealed
from shards.storage.files import write_json
from tests.pipelines.inline import InlineRunner


@dataclass(frozen=True, kw_only=True)
class Task:
    name: str


@dataclass(frozen=True, kw_only=True)
class Result:
    value: int


TASKS = [Task(name=name) for name in "abc"]


def leave(folder: Path, name: str, value: int) -> None:
    write_json(folder / f"{name}.json", sealed(Result(value=value)))


def prepare(folder: Path) -> RunTask:
    return lambda task: leave(folder, task.name, 1)


def finish(
    work: Path, runner: InlineRunner, prepare: Callable[[Any], RunTask] = prepare, *, least: int = 0
) -> dict[str, Result]:
    phases = Phases(work, cast("Runner", runner))
    return phases.finish(
        "dedup",
        TASKS,
        prepare,
        work / "dedup",
        record_type=Result,
        complete=lambda record: record.value >= least,
    )


def test_the_old_record_of_a_task_is_deleted_before_it_runs(tmp_path: Path) -> None:
    """Else a run that ends now would find it finished, and progress would count it at once."""
    leave(tmp_path / "dedup", "a", 0)

    def failing(folder: Path) -> RunTask:
        assert not (folder / "a.json").exists()
        raise UserError("ended")

    with pytest.raises(UserError, match="ended"):
        finish(tmp_path, InlineRunner(), failing, least=1)
    assert not (tmp_path / "dedup" / "a.json").exists()


def test_a_task_that_an_earlier_attempt_finished_is_not_run_again(tmp_path: Path) -> None:
    """As when an engine that lost a machine hands out all tasks of a job again."""
    done: list[str] = []

    def prepare_logged(folder: Path) -> RunTask:
        def run_task(task: Task) -> None:
            done.append(task.name)
            write_json(folder / f"{task.name}.json", {"value": 1})

        return run_task

    for _ in range(2):
        run_task = prepare_unfinished((tmp_path, prepare_logged, tmp_path))
        for task in TASKS:
            assert run_task(task) == tmp_path / f"{task.name}.json"
    assert done == ["a", "b", "c"]
