"""Scores agree with those of lm-evaluation-harness on local files, on any number of ranks."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from shards.errors import UserError
from tests.trainer import golden
from tests.trainer.alone import ALONE
from tests.trainer.golden import needs_shared
from tests.trainer.tasks.harness import FOLDER, POSITIONS, figures, gpt2, tokenizer
from trainer.evaluate.benchmarks import answers_of
from trainer.evaluate.harness import Benchmarks, Figures, ForwardEval, load_tasks
from trainer.model.loss import LossSums

pytestmark = pytest.mark.slow  # the harness takes seconds to import
TASKS = ("hellaswag", "arc", "copa", "lambada", "wikitext")


@cache
def loaded() -> Mapping[str, Any]:
    return load_tasks({name: FOLDER / f"{name}.jsonl" for name in TASKS})


def benchmarks(*names: str, mask: int | None = None) -> Benchmarks:
    tasks = {name: loaded()[name] for name in names}
    return Benchmarks(tasks=tasks, tokenizer=tokenizer(), length=POSITIONS, mask=mask, ranks=ALONE)


def scored(asked: Benchmarks, answer: ForwardEval, **more: Any) -> Figures:
    found = replace(asked, **more).score(answer)
    assert found is not None
    return found


def test_the_figures_of_lm_evaluation_harness_itself() -> None:
    found = scored(benchmarks(*TASKS), answers_of(gpt2()))
    for name in TASKS:
        for figure, value in figures()[name]["metrics"].items():
            if (name, figure) == ("copa", "acc_norm"):
                continue  # the harness counted this by request
            if figure.startswith("acc"):
                assert found[name][figure] == value
            elif figure != "sample_len":
                assert found[name][figure] == pytest.approx(value, rel=1e-6)


def test_a_diverged_model_has_no_figures() -> None:
    def diverged(batch: Mapping[str, Tensor]) -> LossSums:
        counts = batch["loss_mask"].sum(1)
        return LossSums(torch.full((len(counts),), math.nan), counts, counts)

    found = scored(benchmarks("hellaswag", "lambada"), diverged)
    assert all(math.isnan(value) for own in found.values() for value in own.values())


@needs_shared
def test_the_reference_s_accuracy_of_lambada() -> None:
    figures_of = golden.figures("language.json")["lambada"]
    special = golden.gpt2().special
    asked = Benchmarks(
        tasks=load_tasks({"lambada": golden.items(figures_of["items"])}),
        tokenizer=golden.gpt2(),
        length=96,
        mask=special["gmask"],
        ranks=ALONE,
    )
    found = scored(asked, answers_of(golden.writing_model()))
    assert found["lambada"]["acc"] * 100 == figures_of["metrics"]["accuracy"]


def test_an_answer_that_does_not_fit() -> None:
    asked = replace(benchmarks("copa"), length=3)
    with pytest.raises(UserError, match=r"an answer has .* tokens, and in a row of 3 there is"):
        asked.score(answers_of(gpt2()))
