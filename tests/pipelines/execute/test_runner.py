from pathlib import Path

import pytest

from pipelines.execute.item import packed
from pipelines.execute.runner import Runner
from shards.errors import UserError
from tests.pipelines import duties
from tests.pipelines.duties import Item

pytestmark = pytest.mark.slow


def run(folder: Path, *items: Item, num_workers: int = 0) -> None:
    with Runner((), num_workers=num_workers) as runner:
        runner.run(items, packed(duties.prepare, folder))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_user_error_comes_through_word_for_word_and_any_other_says_where_it_was(
    tmp_path: Path, num_workers: int
) -> None:
    with pytest.raises(UserError, match=r"^mend x: 请改$"):
        run(tmp_path, ("x", "raise:user"), num_workers=num_workers)
    with pytest.raises(RuntimeError if num_workers else ValueError, match="x is broken"):
        run(tmp_path, ("x", "raise:other"), num_workers=num_workers)


def test_lack_of_memory_names_the_item_and_counts_as_the_death_of_a_child(tmp_path: Path) -> None:
    for name in ("here", "child"):
        (tmp_path / name).mkdir()
    message = r"^there is not enough memory for the \('x', .*ulimit -v"
    with pytest.raises(UserError, match=message):
        run(tmp_path / "here", ("x", "raise:memory"))
    with pytest.raises(UserError, match=r"died 3 times .* it was killed, most likely for lack of"):
        run(tmp_path / "child", ("x", "raise:memory"), ("y", "nothing"), num_workers=1)
    assert duties.starts(tmp_path / "child", "x") == 3
    assert duties.starts(tmp_path / "child", "y") == 1
