"""The losses and gradients of one batch equal those of the reference (THUDM/GLM 4f61ed7)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainer.golden import figures, gpt2, needs_shared, option, questions_of, tasks_model
from trainer.finetune.command import CROSS_ENTROPY
from trainer.finetune.scoring import Scoring, have_choices, losses, predict
from trainer.model.model import GLM
from trainer.tasks.catalogue import find_task
from trainer.tasks.collate import collate, pack
from trainer.tasks.rows import Example, Row, rows_of

pytestmark = [needs_shared, pytest.mark.slow]

CASES = (
    *("copa.p0", "copa.p0.length_penalty_1", "copa.p0.hinge", "copa.p0.generative", "copa.p0.mix"),
    *("wsc_negative.p2", "wsc.p0", "rte.p0"),
)
SCORES = {
    name: case
    for name, case in figures("scores.json").get("cases", {}).items()
    if "--cloze-eval" in case["options"]
}


def scoring_of(case: Mapping[str, Any], questions: Sequence[Example]) -> Scoring:
    return Scoring(
        pad=gpt2().special["pad"],
        has_choices=have_choices(questions),
        penalty=float(option(case, "--length-penalty", "0")),
    )


def gradient_norm(model: torch.nn.Module) -> float:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return float(torch.nn.utils.get_total_norm(gradients))


def loss_of(model: GLM, scoring: Scoring, questions: list[Example], kind: str) -> torch.Tensor:
    if not scoring.has_choices:
        lines = pack(rows_of(questions))
        sums = model.loss_sum(collate(lines, pad=scoring.pad, isolate=True))
        return sums.loss.sum() / sums.num_targets.sum()
    scores = scoring.scores(model(scoring.batch(questions)), questions)
    labels = torch.tensor([question.label for question in questions])
    return losses(scores, labels, kind).mean()


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_of_a_batch(name: str) -> None:
    case = figures("scores.json")["training"][name]
    by_guid = {question.guid: question for question in questions_of(case)}
    questions = [by_guid[guid] for guid in case["uids"]]
    model = tasks_model()
    scoring = scoring_of(case, questions)
    loss = loss_of(model, scoring, questions, option(case, "--loss-func", CROSS_ENTROPY))
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(case["loss"], abs=1e-3)
    assert gradient_norm(model) == pytest.approx(case["grad_norm"], rel=2e-3)
    norms = {
        name: p.grad.norm().item() for name, p in model.named_parameters() if p.grad is not None
    }
    for long_name, norm in case["grad_norms"].items():
        own = long_name.removeprefix("model.")
        if own in norms:
            assert norms[own] == pytest.approx(norm, rel=5e-3, abs=1e-5), own


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_of_texts(smoothing: float) -> None:
    content = figures("seq2seq.json")
    figure = content["loss_of_the_first_four_gigaword_train"][str(smoothing)]
    samples = content["cases"]["gigaword.train"]["samples"][:4]
    questions = [Example(guid=sample["uid"], idx=None, rows=(_row(sample),)) for sample in samples]
    model = tasks_model(smoothing=smoothing).train()
    scoring = Scoring(pad=gpt2().special["pad"], has_choices=False)
    loss = loss_of(model, scoring, questions, CROSS_ENTROPY)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(figure["loss"], abs=1e-3)
    assert gradient_norm(model) == pytest.approx(figure["grad_norm"], rel=2e-3)


@pytest.mark.parametrize("name", SCORES)
def test_answers_of_a_validation(name: str) -> None:
    case = SCORES[name]
    questions = questions_of(case)
    model = tasks_model().eval()
    scoring = scoring_of(case, questions)
    answers = predict(model, questions, length_penalty=scoring.penalty)
    given = [one.answer for one in answers]
    assert [question.guid for question in questions] == case["uids"]
    assert _labels(questions, given) == case["predictions"]
    assert find_task(case["task"]).metrics(questions, given) == pytest.approx(
        case["metrics"], rel=1e-9
    )
    if not scoring.has_choices:
        assert [one.loss for one in answers] == pytest.approx(case["answer_nll"], abs=1e-4)
        return
    with torch.no_grad():
        scores = scoring.scores(model(scoring.batch(questions)), questions)
    for one, other in zip(scores.tolist(), case["scores"], strict=True):
        assert one[: len(other)] == pytest.approx(other, abs=1e-4)


def _labels(questions: list[Example], given: list[int]) -> list[int]:
    return [
        int(number == 0) if (question.facts or {}).get("has_candidates") else number
        for question, number in zip(questions, given, strict=True)
    ]


def _row(sample: dict[str, Any]) -> Row:
    sep, is_learnt = sample["mask"], np.array(sample["logit_mask"], np.bool_)
    return Row(
        sample["text"][:sep],
        np.array(sample["target"])[is_learnt].tolist(),
        mask_at=sample["position"][0][sep],
        sop=sample["text"][sep],
    )
