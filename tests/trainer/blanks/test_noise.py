import numpy as np

from tests.trainer.texts import keys_of
from trainer.blanks.noise import noise_in_context
from trainer.blanks.sample_rng import SampleRng
from trainer.blanks.text import Spans

RUNS = Spans(np.array([0, 0, 1]), np.array([1, 20, 0]), np.array([15, 10, 30]))
BLANKS = Spans(np.array([0, 0, 0, 1]), np.array([2, 8, 21, 12]), np.array([4, 1, 3, 6]))
NEAR = {0: {1, 6, 7, 9, 10, 11, 20, 24, 25, 26}, 1: {9, 10, 11, 18, 19, 20}}
"""Three on each side, in the run and in no blank."""


def context(*numbers: int, first: int = 0) -> dict[int, set[int]]:
    rng = SampleRng(keys_of(2, first=first))
    rows, columns = noise_in_context(RUNS, BLANKS, np.array(numbers), rng)
    return {row: set(columns[rows == row].tolist()) for row in (0, 1)}


def test_tokens_near_blanks() -> None:
    assert context(99, 99) == NEAR
    assert context(0, 0) == {0: set(), 1: set()}


def test_as_many_as_asked_for() -> None:
    seen: dict[int, set[int]] = {0: set(), 1: set()}
    for first in range(0, 200, 2):
        positions = context(4, 2, first=first)
        assert [len(positions[row]) for row in (0, 1)] == [4, 2]
        for row, columns in positions.items():
            seen[row] |= columns
    assert seen == NEAR
