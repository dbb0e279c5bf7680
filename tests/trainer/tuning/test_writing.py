import signal
from typing import Any

import pytest
import torch

from tests.trainer.alone import ALONE
from tests.trainer.tuning.lessons import SHAPE, TOKENIZER
from tests.trainer.tuning.test_step import Engine
from trainer.decode.decoding import Decoding
from trainer.model.cache import Cache
from trainer.model.model import GLM
from trainer.step import Stepper
from trainer.stop import Stop
from trainer.tasks.question import Question
from trainer.tasks.rows import causal_row
from trainer.tokenizer import TextTokenizer
from trainer.tuning.writing import Scribe

QUESTIONS = [
    Question(guid=str(number), idx=number, rows=(causal_row([5, 6, number], []),))
    for number in range(7, 13)
]


@pytest.mark.parametrize("beams", [1, 2])
def test_a_signal_is_obeyed_before_the_next_token(beams: int) -> None:
    read: list[Cache] = []

    class Signalled(Engine):
        def __call__(self, cache: Cache, **_: Any) -> torch.Tensor:
            read.append(cache)
            if len(read) == 4:
                signal.raise_signal(signal.SIGTERM)
            return torch.zeros(len(cache.tokens), SHAPE.vocab_size)

    stepper = Stepper.__new__(Stepper)
    stepper.engine = Signalled(GLM(SHAPE))
    stepper.micro_batch, stepper.stage = 2, 0
    stop = Stop()
    scribe = Scribe(
        stepper=stepper,
        shape=SHAPE,
        tokenizer=TextTokenizer(TOKENIZER),
        decoding=Decoding(max_new_tokens=2, beams=beams),
        ranks=ALONE,
        stop=stop,
    )
    with stop:
        assert scribe.write(QUESTIONS, stop=lambda: stop.agreed_exit_code(ALONE)) is None
    assert len(read) == 4
