import pytest

from shards.errors import UserError
from tests.trainer.alone import ALONE
from trainer.ranks import AgreedError, describe_problems


def test_together() -> None:
    def fail() -> None:
        raise UserError("no")

    assert ALONE.together(lambda: 5) == 5
    with pytest.raises(AgreedError, match=r"^no$"):
        ALONE.together(fail)


@pytest.mark.parametrize(
    ("problems", "text"),
    [
        ([None, None], ""),
        (["a", "a"], "a"),
        ([None, "a"], "rank 1: a"),
        (["b", "a", "b"], "rank 0: b\n  rank 1: a"),
    ],
)
def test_each_problem_is_reported_once(problems: list[str | None], text: str) -> None:
    assert describe_problems(problems) == text
