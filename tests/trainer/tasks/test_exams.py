"""The figures of lm-evaluation-harness and of the reference."""

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from shards.errors import UserError
from tests.trainer.alone import ALONE
from tests.trainer.golden import SHARED, needs_shared
from tests.trainer.tasks.harness import FOLDER, figures, gpt2, phrasing
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.ranks import Ranks
from trainer.tasks.exam import Answers, Exam
from trainer.tasks.exams import NAMES, open_exams, parse_exams
from trainer.tasks.phrasing import Phrasing
from trainer.tasks.sitting import sit, sit_all
from trainer.tokenizer import TextTokenizer
from trainer.weights.published import Weights

TASKS = ("hellaswag", "arc", "copa", "lambada", "wikitext")


class Noted:
    """An exam that keeps the answers."""

    def __init__(self, exam: Exam) -> None:
        self._exam = exam
        self.answers: Answers | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exam, name)

    def figures(self, answers: Answers) -> dict[str, float]:
        self.answers = answers
        return self._exam.figures(answers)


def answers_to(exam: Exam, model: GLM) -> tuple[Answers, dict[str, float]]:
    noted = Noted(exam)
    found = sit(noted, model.loss_sum, ranks=ALONE)  # type: ignore[arg-type]  # has all by __getattr__
    assert noted.answers is not None
    assert found is not None
    return noted.answers, found


def exam_of(name: str, **changes: Any) -> Exam:
    files = parse_exams("--task", [f"{name}={FOLDER / name}.jsonl"])
    return open_exams(files, phrasing(**changes))[name]


@pytest.mark.parametrize("name", TASKS)
def test_the_figures_of_lm_evaluation_harness(name: str) -> None:
    answers, found = answers_to(exam_of(name), gpt2())
    expected = {
        figure: value
        for figure, value in figures()[name]["metrics"].items()
        if figure != "sample_len"
    }
    assert len(expected) >= 2
    for figure, value in expected.items():
        if figure.startswith("acc"):
            assert found[figure] == value
        else:
            assert found[figure] == pytest.approx(value, rel=1e-6)
    if name != "wikitext":
        given = [answer for item in figures()[name]["responses"] for answer in item]
        assert answers.log_probability == pytest.approx([row[0] for row in given], abs=1e-3)
        assert answers.all_correct.tolist() == [row[1] for row in given]


def test_contexts_that_are_too_long_lose_their_beginning_as_the_harness_has_it() -> None:
    cut = {name: exam_of(name).counts["cut"] for name in TASKS[:4]}
    assert cut == {"hellaswag": 1, "arc": 1, "copa": 0, "lambada": 1}


def test_the_same_figures_on_any_number_of_ranks() -> None:
    exams = {name: exam_of(name) for name in TASKS}
    alone = sit_all(exams, gpt2().loss_sum, ranks=ALONE, batch_tokens=300)
    assert alone is not None
    assert {"acc/hellaswag", "acc_norm/arc", "perplexity/lambada"} <= set(alone)
    for world in (2, 3):
        assert all(found == alone for found in _on_ranks(world, exams))


def _on_ranks(world: int, exams: Mapping[str, Exam]) -> list[dict[str, float] | None]:
    """Sit exams on ranks that are threads; a rank that calls the model more often than another
    would leave one waiting at the barrier."""
    found: list[dict[str, float] | None] = [None] * world
    together = threading.Barrier(world, timeout=60)
    sums: dict[int, Tensor] = {}

    class Together(Ranks):
        def sum(self, values: Tensor) -> Tensor:
            sums[self.rank] = values
            together.wait()
            total = torch.stack([sums[rank] for rank in range(world)]).sum(0)
            together.wait()
            return total

    def answer(batch: Mapping[str, Tensor]) -> LossSums:
        together.wait()
        with torch.no_grad():
            return gpt2().loss_sum(batch)

    def rank_sits(rank: int) -> None:
        ranks = Together(rank=rank, world=world, local_rank=rank, device=ALONE.device)
        found[rank] = sit_all(exams, answer, ranks=ranks, batch_tokens=300)

    threads = [threading.Thread(target=rank_sits, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_it_can_be_stopped() -> None:
    assert sit_all({"arc": exam_of("arc")}, gpt2().loss_sum, ranks=ALONE, stop=lambda: 1) is None


def test_a_diverged_model_has_nothing_right() -> None:
    def diverged(batch: Mapping[str, Tensor]) -> LossSums:
        counts = batch["loss_mask"].sum(1)
        return LossSums(torch.full((len(counts),), math.nan), counts, counts)

    found = sit_all(
        {name: exam_of(name) for name in ("hellaswag", "lambada")}, diverged, ranks=ALONE
    )
    assert found is not None
    assert found["acc/hellaswag"] == found["acc_norm/hellaswag"] == found["acc/lambada"] == 0


@pytest.mark.parametrize("name", [*TASKS, "language_model"])
@pytest.mark.parametrize("unidirectional", [False, True])
def test_a_glm_is_asked_with_blanks(name: str, unidirectional: bool) -> None:
    glm = GLM(replace(gpt2().config, block_positions=True)).eval().requires_grad_(False)
    path = FOLDER / ("wikitext.jsonl" if name == "language_model" else f"{name}.jsonl")
    if name == "language_model":
        path = FOLDER / "lambada.jsonl"
    asked = phrasing(is_causal=False, mask=506, unidirectional=unidirectional)
    exam = open_exams({name: path}, asked)[name]
    found = sit(exam, glm.loss_sum, ranks=ALONE)
    assert found is not None
    assert all(map(math.isfinite, found.values()))
    rows = [exam.row(i) for i in range(len(exam.sizes))]
    assert max(map(len, rows)) <= 96 + (name in ("wikitext", "language_model"))
    assert {int((row.tokens == 506).sum()) for row in rows} == {1}
    assert all(row.sep is not None and row.position_ids is not None for row in rows)
    assert not unidirectional or max(row.sep or 0 for row in rows) == (
        4 if name in TASKS[:4] else 3
    )


GPT2_MERGES = SHARED / ".." / "tokenizers" / "gpt2-merges.txt"
REFERENCE = SHARED / "tasks"
CASES = {
    "lambada": ("lambada", {}),
    "lambada.unidirectional": ("lambada", {"unidirectional": True}),
    "lm": ("language_model", {"stride": 16}),
    "lm.unidirectional": ("language_model", {"stride": 16, "unidirectional": True}),
    "lm.no_overlap": ("language_model", {"stride": 32}),
}
GLM_IDS = {"sop": 50257, "eop": 50258, "cls": 50259, "mask": 50260, "sep": 50261, "unk": 50262}


class ReferenceTokenizer(TextTokenizer):
    """GPT-2's, with command tokens where the golden model has them."""

    special = {"eos": 50256, "pad": 50256, **GLM_IDS, "gmask": 50263, "smask": 50264}  # type: ignore[assignment]  # noqa: RUF012 - a property there


@cache
def _reference_tokenizer() -> TextTokenizer:
    return ReferenceTokenizer(f"tiktoken:{GPT2_MERGES}")


@needs_shared
@pytest.mark.parametrize("case", CASES)
def test_the_reference_rows_and_figures(case: str) -> None:
    golden = json.loads((REFERENCE / "language.json").read_text())[case]
    name, options = CASES[case]
    stride = options.get("stride")
    asked = Phrasing(
        tokenizer=_reference_tokenizer(),
        is_causal=False,
        length=33 if stride else 96,
        mask=50263,
        unidirectional="unidirectional" in options,
    )
    path = REFERENCE / "items" / golden["items"]
    exam = open_exams({name: path}, asked, stride=stride)[name]
    assert len(exam.sizes) == len(golden["samples"])
    for i, sample in enumerate(golden["samples"]):
        row = exam.row(i)
        assert row.tokens.tolist() == sample["text"]
        assert row.position_ids is not None
        assert row.position_ids.tolist() == sample["position"]
        assert row.sep == sample["mask"]
        scored = np.array(sample["logit_mask"], bool)
        assert (row.loss_mask == scored).all()
        assert (row.targets[scored] == np.array(sample["target"])[scored]).all()
    answers, found = answers_to(exam, _reference_model())
    losses = [row["sum_nll"] for row in golden["each"]]
    assert -answers.log_probability == pytest.approx(losses, abs=1e-3)
    _check_metrics(golden, found)


def _check_metrics(golden: Mapping[str, Any], found: Mapping[str, float]) -> None:
    metrics = golden["metrics"]
    if "accuracy" in metrics:
        assert found["acc"] * 100 == metrics["accuracy"]
        return
    assert found["reference_loss"] == pytest.approx(metrics["avg loss"], rel=2e-4)
    assert found["reference_perplexity"] == pytest.approx(metrics["ppl"], rel=2e-4)
    adjusted = found["reference_adjusted_perplexity"]
    assert adjusted == pytest.approx(metrics["adjusted ppl"], rel=2e-4)


@cache
def _reference_model() -> GLM:
    shape = ModelConfig(
        num_layers=2,
        hidden_size=32,
        num_heads=4,
        vocab_size=50304,
        max_positions=256,
        hidden_dropout=0.0,
        attention_dropout=0.0,
    )
    model = GLM(shape)
    arrays = np.load(REFERENCE / "model.npz")
    weights = {
        name.removeprefix("weight/"): torch.from_numpy(arrays[name].astype("f4"))
        for name in arrays.files
        if name.startswith("weight/")
    }
    Weights.of([weights], files=[REFERENCE / "model.npz"]).copy_into(model)
    return model.eval().requires_grad_(False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hellaswag", "it names a task and its file"),
        ("nothing=x", "there is no such task"),
        ("arc=", "it names a task and its file"),
        ("arc=/nowhere/x", "there is no file /nowhere/x"),
    ],
)
def test_names_and_files(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_exams("--task", [text])


def test_a_task_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    assert list(parse_exams("--task", [f"{name}={path}" for name in NAMES])) == list(NAMES)
    with pytest.raises(UserError, match="arc is there already"):
        parse_exams("--task", [f"arc={path}", f"arc={path}"])
