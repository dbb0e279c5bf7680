"""Texts equal those that THUDM/GLM 4f61ed7 generates, token by token."""

from typing import Any

import pytest
import torch

from tests.trainer.golden import TASKS_SHAPE, figures, gpt2, needs_shared, writing_model
from trainer.generate.decoder import CachedDecoder
from trainer.generate.decoding import Decoding
from trainer.generate.prompt import Blank, Prompt, make_prompt
from trainer.generate.search import ENDED, Completion, fill, filter_logits
from trainer.tokenizer import PromptFormat

pytestmark = [needs_shared, pytest.mark.slow]

READING = PromptFormat(causal=False, positions=TASKS_SHAPE.position_rows)


def cases_of(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = figures("generation.json")[name]["cases"]
    return cases


def reader() -> CachedDecoder:
    return CachedDecoder(writing_model(), TASKS_SHAPE, torch.device("cpu"))


def check(filled: list[list[Completion]], cases: list[dict[str, Any]]) -> None:
    for completions, case in zip(filled, cases, strict=True):
        for filling, blank in zip(completions, case["blanks"], strict=True):
            assert list(filling.tokens) == blank["ids"][1:]
            if "score" in blank:
                assert filling.score == pytest.approx(blank["score"], abs=3e-3)
            else:
                assert (filling.finish == ENDED) == (blank["end_token"] is not None)


@pytest.mark.parametrize(
    ("name", "decoding"),
    [
        ("greedy", Decoding(max_new_tokens=24)),
        ("greedy_short", Decoding(max_new_tokens=6)),
        ("beams_4_no_penalty", Decoding(max_new_tokens=24, beams=4)),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 12])
def test_blanks_are_filled(name: str, decoding: Decoding, size: int) -> None:
    cases = cases_of(name)
    prompts = [make_prompt(case["prompt"], gpt2(), READING) for case in cases]
    for first in range(0, len(cases), size):
        filled = fill(reader(), prompts[first : first + size], decoding)
        check(filled, cases[first : first + size])


def test_sources_are_answered() -> None:
    content = figures("seq2seq.json")
    prompts = []
    for row in content["cases"]["gigaword.test"]["samples"]:
        *context, sop = row["text"]
        start = Blank(
            token=sop,
            position=row["position"][0][-1],
            block_position=row["position"][1][-1],
        )
        prompts.append(
            Prompt(
                context=tuple(context),
                blanks=(start,),
                ends=frozenset({content["command_tokens"]["gpt2"]["eop"]}),
                causal=False,
            )
        )
    found = fill(reader(), prompts, Decoding(max_new_tokens=16, no_repeat_ngram=3))
    expected = content["decoding"]["beams_1_ngram_3"]["output_ids"]
    assert [list(filling.tokens) for (filling,) in found] == expected


def test_filtered_probabilities() -> None:
    cases = figures("sampling.json")
    assert len(cases) == 30
    for case in cases:
        options = {name: case[name] for name in ("temperature", "top_k", "top_p")}
        logits = filter_logits(torch.tensor([case["logits"]]), Decoding(**options))
        probabilities = logits.softmax(-1)[0]
        assert int((probabilities > 0).sum()) == case["kept"]
        assert probabilities.tolist() == pytest.approx(case["probs"], abs=1e-6)
