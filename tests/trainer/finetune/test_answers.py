"""What a small model answers."""

import math
from dataclasses import replace

import pytest
import torch

from shards.errors import UserError
from tests.trainer.tasks.test_superglue import CB, COPA, RECORD, WSC
from tests.trainer.tasks.toy import Desk
from trainer.finetune.answers import answer
from trainer.finetune.batches import Scoring
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tasks.catalogue import find_task
from trainer.tasks.collate import collate


@pytest.fixture(scope="module")
def model() -> GLM:
    torch.manual_seed(3)
    shape = ModelConfig(
        num_layers=1,
        hidden_size=16,
        num_heads=2,
        vocab_size=384,
        max_positions=128,
        hidden_dropout=0.0,
        attention_dropout=0.0,
    )
    return GLM(shape).eval()


@pytest.mark.parametrize(
    ("task", "items"),
    [("record", [RECORD, {**RECORD, "idx": 5}]), ("cb", [CB, {**CB, "idx": 1}]), ("copa", [COPA])],
)
def test_batches_change_nothing(
    desk: Desk, model: GLM, task: str, items: list[dict[str, object]]
) -> None:
    questions = desk.ask(find_task(task), *items) * 3
    whole = answer(model, questions)
    assert len(whole) == 3 * len(items)
    for size in (1, 2):
        assert answer(model, questions, at_once=size) == whole
    for question, one in zip(questions, whole, strict=True):
        assert one.prediction in range(max(len(question.rows), len(question.words)))


def test_length_penalty(desk: Desk, model: GLM) -> None:
    (question,) = desk.ask(find_task("copa"), COPA)
    # A choice of one token beside one of several.
    row = question.rows[0]
    places = row.loss_mask.nonzero()[0]
    fewer = replace(row, loss_mask=row.loss_mask.copy())
    fewer.loss_mask[places[1:]] = False
    two = replace(question, rows=(row, fewer))
    plain = Scoring(pad=0, chosen=True)
    outputs = model(plain.batch([two]))
    (sums,) = plain.scores(outputs, [two]).tolist()
    (means,) = replace(plain, penalty=1.0).scores(outputs, [two]).tolist()
    sizes = [len(places), 1]
    assert means == pytest.approx([one / size for one, size in zip(sums, sizes, strict=True)])
    for penalty, scores in ((0, sums), (1, means)):
        (one,) = answer(model, [two], length_penalty=penalty)
        assert one.prediction == scores.index(max(scores))


@pytest.mark.parametrize(("task", "item"), [("copa", COPA), ("wsc", WSC)])
def test_scores_that_are_no_numbers(
    desk: Desk, model: GLM, task: str, item: dict[str, object]
) -> None:
    broken = GLM(model.config).eval()
    with torch.no_grad():
        broken.word_embeddings.weight.fill_(math.nan)
    questions = desk.ask(find_task(task), item)
    with pytest.raises(UserError, match=f"scores of {questions[0].guid} are not finite"):
        answer(broken, questions)


def test_a_text_that_is_the_most_probable_is_called_true(desk: Desk, model: GLM) -> None:
    (question,) = desk.ask(find_task("wsc"), WSC)
    (row,) = question.rows
    assert answer(model, [question])[0].prediction == 0
    # What the model would write there is true, whatever it is.
    batch = collate([row], pad=0)
    with torch.no_grad():
        logits = model(batch["tokens"], batch["position_ids"], sep=batch["sep"])
    last = row.loss_mask.nonzero()[0][-1:]
    only = replace(row, targets=row.targets * 0, loss_mask=row.loss_mask & False)
    only.targets[last] = int(logits[0, last[0]].argmax())
    only.loss_mask[last] = True
    (one,) = answer(model, [replace(question, rows=(only,))])
    assert (one.prediction, one.correct, one.num_targets) == (1, 1, 1)
