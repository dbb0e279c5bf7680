"""The figures of lm-evaluation-harness with local files, on any number of ranks."""

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from shards.errors import UserError
from tests.trainer.alone import ALONE
from tests.trainer.decode.golden import TASKS as REFERENCE
from tests.trainer.decode.golden import model as reference_model
from tests.trainer.decode.golden import tokenizer as reference_tokenizer
from tests.trainer.golden import needs_shared
from tests.trainer.tasks.harness import FOLDER, POSITIONS, SHAPE, figures, gpt2, tokenizer
from trainer.benchmarks import answers_of, open_benchmarks
from trainer.harness import Answer, Benchmarks, load_tasks
from trainer.model.loss import LossSums
from trainer.opening import Opening
from trainer.ranks import Ranks
from trainer.trained import Origin

pytestmark = pytest.mark.slow  # the harness takes seconds to load
TASKS = ("hellaswag", "arc", "copa", "lambada", "wikitext")


@cache
def loaded() -> Mapping[str, Any]:
    return load_tasks({name: FOLDER / f"{name}.jsonl" for name in TASKS})


def benchmarks(*names: str, mask: int | None = None) -> Benchmarks:
    tasks = {name: loaded()[name] for name in names}
    return Benchmarks(tasks=tasks, tokenizer=tokenizer(), length=POSITIONS, mask=mask, ranks=ALONE)


def scored(asked: Benchmarks, answer: Answer, **more: Any) -> dict[str, float]:
    found = replace(asked, **more).score(answer)
    assert found is not None
    return found


def test_the_figures_of_lm_evaluation_harness_itself() -> None:
    found = scored(benchmarks(*TASKS), answers_of(gpt2()))
    for name in TASKS:
        for figure, value in figures()[name]["metrics"].items():
            if (name, figure) == ("copa", "acc_norm"):
                continue  # which the harness counted by request
            if figure.startswith("acc"):
                assert found[f"{figure}/{name}"] == value
            elif figure != "sample_len":
                assert found[f"{figure}/{name}"] == pytest.approx(value, rel=1e-6)


def test_the_same_figures_on_any_number_of_ranks() -> None:
    alone = scored(benchmarks(*TASKS), answers_of(gpt2()), batch_tokens=300)
    assert all(found == alone for found in _on_ranks(3, benchmarks(*TASKS)))


def _on_ranks(world: int, asked: Benchmarks) -> list[dict[str, float]]:
    """Score on ranks that are threads; a rank that calls the model more often than another would
    leave one waiting at the barrier."""
    found: list[dict[str, float]] = [{}] * world
    together = threading.Barrier(world, timeout=100)
    sums: dict[int, Tensor] = {}
    lock = threading.Lock()

    class Together(Ranks):
        def sum(self, values: Tensor) -> Tensor:
            sums[self.rank] = values
            together.wait()
            total = torch.stack([sums[rank] for rank in range(world)]).sum(0)
            together.wait()
            return total

    def rank_scores(rank: int) -> None:
        ranks = Together(rank=rank, world=world, local_rank=rank, device=ALONE.device)
        with lock:  # the tasks hold what is asked of them
            own = replace(asked, tasks=load_tasks({n: FOLDER / f"{n}.jsonl" for n in TASKS}))
        found[rank] = scored(own, answers_of(gpt2()), ranks=ranks, batch_tokens=300)

    threads = [threading.Thread(target=rank_scores, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_it_can_be_stopped() -> None:
    assert benchmarks("arc").score(answers_of(gpt2()), stop=lambda: 1) is None


def test_a_diverged_model_has_no_figures() -> None:
    def diverged(batch: Mapping[str, Tensor]) -> LossSums:
        counts = batch["loss_mask"].sum(1)
        return LossSums(torch.full((len(counts),), math.nan), counts, counts)

    found = scored(benchmarks("hellaswag", "lambada"), diverged)
    assert all(map(math.isnan, found.values()))


@needs_shared
def test_the_reference_s_accuracy_of_lambada() -> None:
    golden = json.loads((REFERENCE / "language.json").read_text())["lambada"]
    special = reference_tokenizer().special
    asked = Benchmarks(
        tasks=load_tasks({"lambada": REFERENCE / "items" / golden["items"]}),
        tokenizer=reference_tokenizer(),
        length=96,
        mask=special["gmask"],
        ranks=ALONE,
    )
    found = scored(asked, answers_of(reference_model()))
    assert found["acc/lambada"] * 100 == golden["metrics"]["accuracy"]


def test_items_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text(
        '{"query": "The kettle", "choices": ["is hot.", "is a bird that flies."], "label": 0}\n'
    )
    (tmp_path / "texts.jsonl").write_text('{"text": "Milo painted the bicycle."}\n')
    files = {"choices": tmp_path / "own.jsonl", "language_model": tmp_path / "texts.jsonl"}
    origin = Origin(
        path=Path("run"), shape=SHAPE, objective="causal", tokenizer={}, data=(), step=None
    )
    opening = Opening(tokenizer=f"hf:{FOLDER / 'tokenizer.json'}")
    asked = open_benchmarks(files, origin, opening, ranks=ALONE, length=20)
    assert asked is not None
    assert {name: len(task.eval_docs) for name, task in asked.tasks.items()} == dict.fromkeys(
        files, 1
    )
    found = scored(asked, answers_of(gpt2()))
    assert {"acc/choices", "acc_norm/choices", "word_perplexity/language_model"} <= set(found)
    asked = open_benchmarks(files, origin, opening, ranks=ALONE, length=3)
    assert asked is not None
    with pytest.raises(UserError, match=r"an answer has .* tokens, and in a row of 3 there is"):
        asked.score(answers_of(gpt2()))
