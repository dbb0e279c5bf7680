from pathlib import Path

import pytest

from pipelines.execute.runner import Runner
from shards.errors import UserError
from tests.pipelines import duties
from tests.pipelines.duties import Task

pytestmark = pytest.mark.slow


def run(folder: Path, *tasks: Task, num_workers: int = 0, flags: tuple[str, ...] = ()) -> None:
    with Runner(flags, num_workers=num_workers) as runner:
        runner.run(tasks, duties.prepare, folder)


WAYS = [((), 0), (("--runner=DirectRunner",), 0), ((), 1)]
"""Flags and workers: called here, by Beam in this process, in a worker."""


@pytest.mark.parametrize(("flags", "num_workers"), WAYS)
def test_a_user_error_comes_through_word_for_word_and_any_other_says_where_it_was(
    tmp_path: Path, flags: tuple[str, ...], num_workers: int
) -> None:
    with pytest.raises(UserError, match=r"^mend x: 请改$"):
        run(tmp_path, ("x", "raise:user"), num_workers=num_workers, flags=flags)
    with pytest.raises(RuntimeError if num_workers else ValueError, match="x is broken"):
        run(tmp_path, ("x", "raise:other"), num_workers=num_workers, flags=flags)


def test_lack_of_memory_names_the_task_and_in_a_child_counts_as_its_death(tmp_path: Path) -> None:
    for name in ("here", "child"):
        (tmp_path / name).mkdir()
    for flags in ((), ("--runner=DirectRunner",)):
        message = r"^there is not enough memory for the \('x', .*ulimit -v"
        with pytest.raises(UserError, match=message):
            run(tmp_path / "here", ("x", "raise:memory"), flags=flags)
    with pytest.raises(UserError, match=r"died 3 times .* it was killed, most likely for lack of"):
        run(tmp_path / "child", ("x", "raise:memory"), ("y", "nothing"), num_workers=1)
    assert duties.starts(tmp_path / "child", "x") == 3
    assert duties.starts(tmp_path / "child", "y") == 1
