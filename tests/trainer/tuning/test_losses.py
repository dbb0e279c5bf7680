import pytest
import torch

from trainer.tuning.kinds import CROSS_ENTROPY, GENERATIVE, HINGE, MIX
from trainer.tuning.losses import (
    NO_CHOICE,
    by_question,
    losses,
    penalized,
)

SCORES = torch.tensor([[-2.0, -1.0, -5.0], [-1.0, -4.0, NO_CHOICE]])
LABELS = torch.tensor([0, 1])
ENTROPY = [1.3266, 3.0486]
"""log(e^-2 + e^-1 + e^-5) + 2 and log(e^-1 + e^-4) + 4, by hand."""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (CROSS_ENTROPY, ENTROPY),
        (HINGE, [2.0, 4.0]),
        (GENERATIVE, [2.0, 4.0]),
        (MIX, [ENTROPY[0] + 2, ENTROPY[1] + 4]),
    ],
)
def test_losses_by_hand(kind: str, expected: list[float]) -> None:
    assert losses(SCORES, LABELS, kind).tolist() == pytest.approx(expected, abs=1e-4)


def test_a_choice_that_is_not_there_changes_nothing() -> None:
    for kind in (CROSS_ENTROPY, HINGE, GENERATIVE, MIX):
        alone = losses(SCORES[1:, :2], LABELS[1:], kind)
        assert torch.equal(losses(SCORES[1:], LABELS[1:], kind), alone)


def test_scores_are_grouped_by_question() -> None:
    scores = torch.arange(5.0)
    assert by_question(scores, [2, 3]).tolist() == [[0, 1, NO_CHOICE], [2, 3, 4]]
    assert by_question(scores[:4], [2, 2]).tolist() == [[0, 1], [2, 3]]


def test_a_penalty_divides_by_a_power_of_the_length() -> None:
    scores, lengths = torch.tensor([-8.0, -9.0]), torch.tensor([4, 9])
    assert penalized(scores, lengths, 0).tolist() == [-8, -9]
    assert penalized(scores, lengths, 0.5).tolist() == pytest.approx([-4, -3])
