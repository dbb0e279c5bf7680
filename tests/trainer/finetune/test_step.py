from dataclasses import replace
from typing import Any

import pytest

from tests.trainer.alone import ALONE
from tests.trainer.finetune.lessons import SHAPE
from trainer.finetune.batches import Scoring
from trainer.finetune.command import CROSS_ENTROPY
from trainer.finetune.step import Tuner
from trainer.model import attention
from trainer.model import model as model_module
from trainer.model.model import GLM
from trainer.step import Stepper
from trainer.tasks.rows import Question, blank_row

SCORING = Scoring(pad=0, chosen=True)
QUESTIONS = [
    Question(
        guid=str(number),
        idx=number,
        rows=(blank_row(range(1, 5 + number), mask_at=1, sop=0, answer=()),),
        label=0,
        words=(1, 2, 3),
    )
    for number in range(6)
]


class Engine:
    """DeepSpeed's, as far as it calls a model."""

    def __init__(self, model: GLM) -> None:
        self.module = model
        self.eval, self.train = model.eval, model.train

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        return self.module(*arguments, **more)


def tuner_of(model: GLM, scoring: Scoring) -> Tuner:
    stepper = Stepper.__new__(Stepper)
    stepper.engine, stepper.micro_batch = Engine(model), 4
    return Tuner(stepper=stepper, scoring=scoring, loss=CROSS_ENTROPY, ranks=ALONE)


def test_questions_of_many_widths_are_answered_without_flex_attention(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = replace(SHAPE, hidden_dropout=0.0, attention_dropout=0.0)
    model = GLM(shape)
    tuner = tuner_of(model, SCORING)
    expected = tuner.answer(QUESTIONS)
    # As on a GPU, where each width would be compiled.
    monkeypatch.setattr(model_module, "flex_runs_on", lambda _: True)
    monkeypatch.setattr(
        attention, "create_block_mask", lambda *_, **__: pytest.fail("a block mask")
    )
    assert tuner.answer(QUESTIONS) == expected
    assert model.attention == "auto"
    assert model.training
