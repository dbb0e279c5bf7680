import pytest
import torch

from shards.errors import UserError
from tests.trainer.alone import ALONE
from trainer.ranks import AgreedError, describe_problems


def test_together() -> None:
    def fail() -> None:
        raise UserError("no")

    assert ALONE.together(lambda: 5) == 5
    with pytest.raises(AgreedError, match=r"^no$"):
        ALONE.together(fail)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_sums_are_exact(dtype: torch.dtype) -> None:
    values = torch.tensor([2**24 + 1], dtype=dtype)
    total = ALONE.sum(values)
    assert total.dtype == dtype
    assert total.tolist() == [2**24 + 1]


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
