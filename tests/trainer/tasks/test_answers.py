"""Scores and predictions of a small model."""

import math
from dataclasses import replace

import pytest
import torch

from shards.errors import UserError
from tests.trainer.tasks.test_superglue import CB, COPA, RECORD, WSC
from tests.trainer.tasks.toy import Desk
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tasks.answers import NO_CHOICE, Judge, answer
from trainer.tasks.catalogue import find_task
from trainer.tasks.heads import Head
from trainer.tasks.rows import collate
from trainer.tasks.scores import last_logits
from trainer.tasks.task import CLASSIFIER


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


@pytest.fixture
def judge(model: GLM, desk: Desk) -> Judge:
    return Judge(model=model, pad=desk.tokenizer.special["pad"])


def test_any_kinds_in_any_batches(desk: Desk, judge: Judge) -> None:
    questions = [
        *desk.ask(find_task("record"), RECORD, {**RECORD, "idx": 5}),
        *desk.ask(find_task("cb"), CB, {**CB, "idx": 1}),
        *desk.ask(find_task("wsc"), WSC),
        *desk.ask(find_task("copa"), COPA),
    ]
    whole = answer(judge, questions)
    assert [len(one.scores) for one in whole] == [2, 2, 3, 3, 1, 2]
    for size in (1, 2, 3):
        for one, other in zip(whole, answer(judge, questions, rows_at_once=size), strict=True):
            assert one.prediction == other.prediction
            assert one.scores == pytest.approx(other.scores, abs=1e-4)
    for one in (*whole[:4], whole[5]):
        assert one.prediction == one.scores.index(max(one.scores))


def test_numbers_fill_up_and_have_gradients(desk: Desk, judge: Judge) -> None:
    (copa,) = desk.ask(find_task("copa"), COPA)
    (record,) = desk.ask(find_task("record"), RECORD)
    more = replace(record, rows=(*record.rows, record.rows[0]))
    numbers = judge.numbers([more, copa])
    assert numbers.shape == (2, 3)
    assert numbers[0, 0].item() == pytest.approx(numbers[0, 2].item(), abs=1e-5)
    assert numbers[1, 2].item() == NO_CHOICE
    numbers[:, :2].sum().backward()
    assert judge.model.word_embeddings.weight.grad is not None
    judge.model.zero_grad()


def test_length_penalty(desk: Desk, judge: Judge) -> None:
    questions = desk.ask(find_task("copa"), COPA)
    (plain,) = answer(judge, questions)
    (normed,) = answer(replace(judge, penalty=1.0), questions)
    sizes = [int(row.loss_mask.sum()) for row in questions[0].rows]
    said = [" i got wet", " i stayed dry"]
    assert sizes == [len(ids) + 1 for ids in desk.tokenizer.encode_all(said)]
    expected = [score / size for score, size in zip(plain.scores, sizes, strict=True)]
    assert normed.scores == pytest.approx(expected)


@pytest.mark.parametrize("pool", ["cls", "pad", "start"])
def test_classes(desk: Desk, judge: Judge, pool: str) -> None:
    (cb,) = desk.ask(find_task("cb"), CB, form=CLASSIFIER)
    (copa,) = desk.ask(find_task("copa"), COPA, form=CLASSIFIER)
    heads = {
        question.classes: Head(16, question.classes, pool=pool).eval() for question in (cb, copa)
    }
    for question, count in ((cb, 3), (copa, 2)):
        with_head = replace(judge, head=heads[question.classes])
        (one,) = answer(with_head, [question])
        assert len(one.scores) == count
        assert with_head.numbers([question])[0].tolist() == pytest.approx(one.scores, abs=1e-6)


def test_scores_that_are_no_numbers(desk: Desk, judge: Judge) -> None:
    broken = replace(judge, model=GLM(judge.model.config).eval())
    with torch.no_grad():
        broken.model.word_embeddings.weight.fill_(math.nan)
    with pytest.raises(UserError, match="scores of dev-7 are not finite"):
        answer(broken, desk.ask(find_task("copa"), COPA))


def test_a_greedy_answer_is_called_true(desk: Desk, judge: Judge) -> None:
    (question,) = desk.ask(find_task("wsc"), WSC)
    (row,) = question.rows
    assert answer(judge, [question])[0].prediction == 0
    # What the model would write there is true, whatever it is.
    with torch.no_grad():
        best = int(last_logits(judge.model, collate([row], pad=0)).argmax())
    last = row.loss_mask.nonzero()[0][-1:]
    only = replace(row, targets=row.targets * 0, loss_mask=row.loss_mask & False)
    only.targets[last] = best
    only.loss_mask[last] = True
    assert answer(judge, [replace(question, rows=(only,))])[0].prediction == 1
