import math

import pytest
import torch

from shards.errors import UserError
from trainer.generate.decoding import Decoding
from trainer.generate.search import NEVER, filter_logits, mask_tokens, sample_tokens

LOGITS = torch.tensor([[3.0, 1.0, 2.0, 2.0, 0.0, -5.0]])


def kept(*, top_k: int = 0, top_p: float = 0.0, temperature: float = 1.0) -> list[int]:
    options = Decoding(temperature=temperature, top_k=top_k, top_p=top_p)
    logits = filter_logits(LOGITS, options)
    return (logits[0] > NEVER).nonzero()[:, 0].tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"top_k": 1}, [0]),
        ({"top_k": 2}, [0, 2, 3]),  # ties with the k-th token are kept
        ({"top_k": 99}, [0, 1, 2, 3, 4, 5]),
        ({"top_p": 0.5}, [0]),  # 0.51: all later tokens have more than 0.5 before them
        ({"top_p": 0.8}, [0, 2, 3]),
        ({"top_p": 0.95}, [0, 1, 2, 3]),
        ({"top_p": 1.0}, [0, 1, 2, 3, 4, 5]),
        ({"top_k": 1, "top_p": 0.9}, [0]),
        ({"top_p": 0.5, "temperature": 10.0}, [0, 2, 3]),  # the distribution is nearly even
    ],
)
def test_filters(options: dict[str, float], expected: list[int]) -> None:
    assert kept(**options) == expected  # type: ignore[arg-type]  # of two types, by name


@pytest.mark.parametrize("temperature", [1e-20, 1e-38, 5e-324])
def test_the_coldest_temperatures_leave_the_best(temperature: float) -> None:
    assert kept(temperature=temperature, top_p=0.9) == [0]
    cold = filter_logits(LOGITS, Decoding(temperature=temperature, top_k=3))
    assert sample_tokens(cold.expand(3, -1), [0.0, 0.5, 0.99]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0, math.nextafter(1.0, 0.0)])
def test_what_is_filtered_is_never_drawn(chance: float) -> None:
    logits = torch.tensor([[NEVER, 1.0, NEVER, 2.0, NEVER]])
    assert int(sample_tokens(logits, [chance])) in (1, 3)


def test_where_nothing_may_follow() -> None:
    with pytest.raises(UserError, match="--no-repeat-ngram and --min-new-tokens forbid every"):
        mask_tokens(torch.zeros(2, 3), [[], [0, 1, 2]])
