import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.trainer.alone import ALONE
from tests.trainer.tuning.lessons import SHAPE
from tests.trainer.tuning.test_heads import QUESTIONS, SCORING
from trainer.ranks import AgreedError
from trainer.tuning.losses import CROSS_ENTROPY
from trainer.tuning.model import Answering, TunedGLM
from trainer.tuning.step import Tuner


def test_scores_that_are_no_numbers_choose_nothing() -> None:
    model = TunedGLM(SHAPE, answering=Answering(classes=3))
    stepper: Any = SimpleNamespace(engine=model, micro_batch=4)
    tuner = Tuner(stepper=stepper, scoring=SCORING, loss=CROSS_ENTROPY, ranks=ALONE)
    answers = tuner.answer(QUESTIONS)
    assert answers is not None
    assert {answer.prediction for answer in answers} <= {0, 1, 2}
    assert model.head is not None
    with torch.no_grad():
        model.head.output.bias[1] = math.nan
    with pytest.raises(AgreedError, match="scores of 0 are not finite numbers"):
        tuner.answer(QUESTIONS)
