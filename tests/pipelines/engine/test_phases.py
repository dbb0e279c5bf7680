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


def test_the_old_record_of_a_task_is_deleted_before_it_runs(tmp_path: Path) -> None:
    """Else a run that ends now would find it finished, and progress would count it at once."""
    folder = tmp_path / "dedup"
    write_json(folder / "a.json", sealed(Result(value=0)))

    def failing(folder: Path) -> RunTask:
        assert not (folder / "a.json").exists()
        raise UserError("ended")

    phases = Phases(tmp_path, cast("Runner", InlineRunner()))
    with pytest.raises(UserError, match="ended"):
        phases.finish(
            "dedup",
            [Task(name="a")],
            failing,
            folder,
            record_type=Result,
            complete=lambda record: record.value > 0,
        )
    assert not (folder / "a.json").exists()


def test_a_task_that_an_earlier_attempt_finished_is_not_run_again_and_tells_the_same(
    tmp_path: Path,
) -> None:
    """As when an engine that lost a machine hands out all tasks of a job again."""
    done: list[str] = []
    folder = tmp_path / "dedup"

    def prepare(folder: Path) -> Callable[[Any], None]:
        def run_task(task: Task) -> None:
            done.append(task.name)
            record = {"drops": 3, "compared": 8, "failed": 2}
            write_json(folder / f"{task.name}.json", record)

        return run_task

    first, again = [prepare_unfinished((folder, prepare, folder))(Task(name="a")) for _ in range(2)]
    assert done == ["a"]
    assert first is not None
    assert again is not None
    counts = {"tasks": 1, "duplicates found": 3, "documents compared": 8}
    assert first.figures().counts == {**counts, "documents not similar": 2}
    assert again.figures().counts == first.figures().counts
    assert [name for name, _ in first.figures().spreads] == ["milliseconds of a task"]
    assert again.figures().spreads == ()
