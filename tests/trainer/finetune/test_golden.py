"""Losses and gradients of one batch as the reference has them (THUDM/GLM 4f61ed7)."""

import json
import shlex
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainer.finetune.test_step import tuner_of
from tests.trainer.golden import SHARED, needs_shared
from tests.trainer.tasks import reference
from trainer.finetune.batches import Scoring, are_chosen, losses, packed
from trainer.finetune.command import CROSS_ENTROPY
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tasks.catalogue import find_task
from trainer.tasks.rows import Question, Row
from trainer.tasks.task import TRAIN, VALIDATION, Asking
from trainer.tokenizer import TextTokenizer

pytestmark = needs_shared

TASKS = SHARED / "tasks"
TOKENIZERS = SHARED.parent / "tokenizers"
CASES = (
    *("copa.p0", "copa.p0.length_penalty_1", "copa.p0.hinge", "copa.p0.generative", "copa.p0.mix"),
    *("wsc_negative.p2", "wsc.p0", "rte.p0"),
)
SCORES = {
    name: case
    for name, case in reference.figures("scores.json").get("cases", {}).items()
    if "--cloze-eval" in case["options"]
}
SHAPE = ModelConfig(
    num_layers=2,
    hidden_size=32,
    num_heads=4,
    vocab_size=50304,
    max_positions=256,
    hidden_dropout=0.0,
    attention_dropout=0.0,
)


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((TASKS / "scores.json").read_text())["training"]
    return content


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    arrays = np.load(TASKS / "model.npz")
    return {name: torch.from_numpy(arrays[name].astype("f4")) for name in arrays.files}


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer(f"tiktoken:{TOKENIZERS / 'gpt2-merges.txt'}")


def options_of(text: str) -> dict[str, str]:
    words = shlex.split(text)
    given, name = {}, ""
    for word in words:
        if word.startswith("--"):
            name = word
            given[name] = ""
        else:
            given[name] = word
    return given


def model_of(weights: dict[str, torch.Tensor], *, smoothing: float = 0.0) -> GLM:
    model = GLM(SHAPE, smoothing=smoothing)
    model.load_state_dict(
        {name[7:]: value for name, value in weights.items() if name.startswith("weight/")}
    )
    return model


def gradient_norm(model: torch.nn.Module) -> float:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return float(torch.nn.utils.get_total_norm(gradients))


def loss_of(model: GLM, scoring: Scoring, questions: list[Question], kind: str) -> torch.Tensor:
    if not scoring.chosen:
        sums = model.loss_sum(scoring.batch(packed(questions)))
        return sums.loss.sum() / sums.num_targets.sum()
    scores = scoring.scores(model(scoring.batch(questions)), questions)
    labels = torch.tensor([question.label for question in questions])
    return losses(scores, labels, kind).mean()


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_of_a_batch(
    name: str,
    figures: dict[str, Any],
    weights: dict[str, torch.Tensor],
    tokenizer: TextTokenizer,
) -> None:
    case = figures[name]
    options = options_of(case["options"])
    asking = Asking(
        length=int(options["--seq-length"]),
        pattern=int(options.get("--pattern-id", 0)),
        candidates="--wsc-negative" in options,
    )
    path = TASKS / "items" / f"{case['items']}.jsonl"
    every = find_task(case["task"]).questions(path, split=TRAIN, tokenizer=tokenizer, asking=asking)
    by_guid = {question.guid: question for question in every}
    questions = [by_guid[guid] for guid in case["uids"]]
    model = model_of(weights)
    scoring = Scoring(
        pad=tokenizer.special["pad"],
        chosen=are_chosen(questions),
        penalty=float(options.get("--length-penalty", 0)),
    )
    loss = loss_of(model, scoring, questions, options.get("--loss-func", CROSS_ENTROPY))
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
def test_loss_of_texts(
    smoothing: float, weights: dict[str, torch.Tensor], tokenizer: TextTokenizer
) -> None:
    content = json.loads((TASKS / "seq2seq.json").read_text())
    figure = content["loss_of_the_first_four_gigaword_train"][str(smoothing)]
    samples = content["cases"]["gigaword.train"]["samples"][:4]
    questions = [Question(guid=sample["uid"], idx=None, rows=(_row(sample),)) for sample in samples]
    model = model_of(weights, smoothing=smoothing).train()
    scoring = Scoring(pad=tokenizer.special["pad"], chosen=False)
    loss = loss_of(model, scoring, questions, CROSS_ENTROPY)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(figure["loss"], abs=1e-3)
    assert gradient_norm(model) == pytest.approx(figure["grad_norm"], rel=2e-3)


@pytest.mark.parametrize("name", SCORES)
def test_answers_of_a_validation(
    name: str, weights: dict[str, torch.Tensor], tokenizer: TextTokenizer
) -> None:
    case = SCORES[name]
    task, path = find_task(case["task"]), reference.items(f"{case['items']}.jsonl")
    questions = task.questions(
        path, split=VALIDATION, tokenizer=tokenizer, asking=reference.asking(case)
    )
    model = model_of(weights).eval()
    scoring = Scoring(
        pad=tokenizer.special["pad"],
        chosen=are_chosen(questions),
        penalty=float(reference.option(case, "--length-penalty", "0")),
    )
    answers = tuner_of(model, scoring).answer(questions)
    assert answers is not None
    given = [answer.prediction for answer in answers]
    assert [question.guid for question in questions] == case["uids"]
    assert _labels(questions, given) == case["predictions"]
    assert task.metrics(questions, given) == pytest.approx(case["metrics"], rel=1e-9)
    if not scoring.chosen:
        assert [answer.loss for answer in answers] == pytest.approx(case["answer_nll"], abs=1e-4)
        return
    with torch.no_grad():
        scores = scoring.scores(model(scoring.batch(questions)), questions)
    for one, other in zip(scores.tolist(), case["scores"], strict=True):
        assert one[: len(other)] == pytest.approx(other, abs=1e-4)


def _labels(questions: list[Question], given: list[int]) -> list[int]:
    return [
        int(number == 0) if (question.facts or {}).get("has_candidates") else number
        for question, number in zip(questions, given, strict=True)
    ]


def _row(sample: dict[str, Any]) -> Row:
    return Row(
        tokens=np.array(sample["text"]),
        position_ids=np.array(sample["position"]),
        sep=sample["mask"],
        targets=np.array(sample["target"]),
        loss_mask=np.array(sample["logit_mask"], np.bool_),
    )
