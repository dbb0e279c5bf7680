from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainer.saved import SHAPE
from trainer.finetune.batches import NO_CHOICE, Scoring, losses, packed
from trainer.finetune.command import CROSS_ENTROPY, GENERATIVE, HINGE, MIX
from trainer.model.model import GLM
from trainer.tasks.rows import Question, blank_row, causal_row

SCORES = torch.tensor([[-2.0, -1.0, -5.0], [-1.0, -4.0, NO_CHOICE]])
LABELS = torch.tensor([0, 1])
ENTROPY = [1.3266, 3.0486]
"""log(e^-2 + e^-1 + e^-5) + 2 and log(e^-1 + e^-4) + 4, by hand."""
SIZE, CLS, MASK, SOP, EOP = 128, 1, 2, 3, 4
TEXTS = Scoring(pad=0, chosen=False)


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
    # A choice that is not there changes nothing.
    alone = losses(SCORES[1:, :2], LABELS[1:], kind)
    assert torch.equal(losses(SCORES[1:], LABELS[1:], kind), alone)


def questions(*, causal: bool) -> list[Question]:
    rng = np.random.default_rng(0)
    made = []
    for length, answer in ((20, 4), (5, 2), (7, 3), (3, 1), (12, 6)):
        text = rng.integers(5, SIZE, length).tolist()
        target = [*rng.integers(5, SIZE, answer).tolist(), EOP]
        if causal:
            row = causal_row([CLS, *text], target)
        else:
            row = blank_row([CLS, *text, MASK], mask_at=length + 1, sop=SOP, answer=target)
        made.append(Question(guid="", idx=0, rows=(row,)))
    return made


def model(*, causal: bool) -> GLM:
    torch.manual_seed(0)
    more: Any = {"block_positions": not causal, "max_positions": 64, "init_std": 0.2}
    return GLM(replace(SHAPE, vocab_size=SIZE, **more)).eval()


@pytest.mark.parametrize(
    ("causal", "groups"), [(False, [[0], [1, 2], [3], [4]]), (True, [[0], [1, 2, 3], [4]])]
)
def test_a_question_loses_in_company_what_it_loses_alone(
    causal: bool, groups: list[list[int]]
) -> None:
    several, shared = questions(causal=causal), packed(questions(causal=causal))
    glm = model(causal=causal)
    alone = [glm.loss_sum(TEXTS.batch([one])).loss.item() for one in several]
    sums = [sum(alone[i] for i in group) for group in groups]
    assert glm.loss_sum(TEXTS.batch(shared)).loss.tolist() == pytest.approx(sums, rel=1e-5)
