"""A classifier's head in training: dropout and widths do not depend on the micro-batch."""

from dataclasses import replace

import pytest
import torch

from tests.trainer.tuning.lessons import SHAPE
from trainer.model.dropout import Seeds
from trainer.tasks.question import Question
from trainer.tasks.rows import blank_row
from trainer.tuning.batches import Scoring, longest
from trainer.tuning.model import Answering, TunedGLM

SCORING = Scoring(pad=0, chosen=True)


def question(number: int) -> Question:
    row = blank_row(range(1, 5 + number), mask_at=1, sop=0, answer=())
    return Question(guid=str(number), idx=number, rows=(row,), label=0, classes=3)


QUESTIONS = [question(number) for number in range(6)]


def scores(model: TunedGLM, first: int, end: int) -> torch.Tensor:
    batch = SCORING.batch(QUESTIONS[first:end])
    return model.outputs(batch, Seeds.of_slots(5, 1, range(first, end))).scores


def test_dropout_does_not_depend_on_the_micro_batch() -> None:
    torch.manual_seed(1)
    shape = replace(SHAPE, hidden_dropout=0.5)
    model = TunedGLM(shape, answering=Answering(classes=3)).train()
    together = scores(model, 0, 6)
    alone = torch.cat([scores(model, at, at + 1) for at in range(6)])
    torch.testing.assert_close(together, alone)
    assert model.head is not None
    # The head drops units, too: others in another row, none in evaluation.
    states, lengths = torch.ones(2, 4, SHAPE.hidden_size), torch.tensor([4, 4])
    one, other = model.head(states, lengths, Seeds.of_slots(5, 1, range(2)))
    assert not torch.equal(one, other)
    one, other = model.eval().head(states, lengths)
    assert torch.equal(one, other)


@pytest.mark.parametrize("size", [1, 4])
def test_all_micro_batches_of_a_step_may_be_as_wide(size: int) -> None:
    # As where kernels draw dropout by the width.
    width = longest(QUESTIONS)
    parts = [QUESTIONS[at : at + size] for at in range(0, 6, size)]
    widths = {SCORING.batch(part, width=width)["tokens"].shape[1] for part in parts}
    assert widths == {width}
