from pathlib import Path

import pytest

from shards.errors import UserError
from trainer.decode.prompt import Reading, make_prompt
from trainer.tasks.items import read_prompts
from trainer.tokenizer import TextTokenizer

SAMPLE = Path(__file__).parents[3] / "pipelines" / "sample" / "sample.model"
BLANKS = Reading(causal=False, positions=65)


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer(f"sentencepiece:{SAMPLE}")


def test_blanks(tokenizer: TextTokenizer) -> None:
    special = tokenizer.special
    prompt = make_prompt("Fold six \t[MASK] of paper[sMASK][gMASK]  .", tokenizer, BLANKS)
    before, behind = tokenizer.encode("Fold six"), tokenizer.encode(" of paper")
    end = tokenizer.encode("  .")
    assert list(prompt.context) == [
        special["cls"],
        *before,
        special["mask"],
        *behind,
        special["smask"],
        special["gmask"],
        *end,
        special["eos"],
    ]
    assert prompt.parts == ("Fold six", " of paper", "", "  .")
    places = [prompt.context.index(special[role]) for role in ("mask", "smask", "gmask")]
    assert [blank.position for blank in prompt.blanks] == places
    assert {blank.token for blank in prompt.blanks} == {special["sop"]}
    assert prompt.position_of(1, 0) == (places[1], 1)
    assert prompt.position_of(1, 4) == (places[1], 5)
    assert prompt.ends == {special["eos"], special["eop"]}


@pytest.mark.parametrize("text", ["Fold six", "Fold six [gMASK]", "Fold six\n [gMASK]"])
def test_texts_that_go_on_have_no_end(tokenizer: TextTokenizer, text: str) -> None:
    prompt = make_prompt(text, tokenizer, BLANKS)
    special = tokenizer.special
    assert list(prompt.context) == [
        special["cls"],
        *tokenizer.encode("Fold six"),
        special["gmask"],
    ]
    assert prompt.parts == ("Fold six", "")


def test_without_task_masks(tokenizer: TextTokenizer) -> None:
    plain = Reading(causal=False, positions=65, task_mask=False)
    special = tokenizer.special
    prompt = make_prompt("Fold six", tokenizer, plain)
    assert list(prompt.context[-2:]) == [special["mask"], special["eos"]]
    with pytest.raises(UserError, match=r"has \[gMASK\], and the model .* without task masks"):
        make_prompt("Fold [MASK] and [gMASK]", tokenizer, plain)


def test_causal(tokenizer: TextTokenizer) -> None:
    prompt = make_prompt("Fold [MASK] six", tokenizer, Reading(causal=True, positions=64))
    ids = tokenizer.encode("Fold [MASK] six")
    assert [*prompt.context, prompt.blanks[0].token] == ids
    assert tokenizer.special["mask"] not in ids
    assert prompt.position_of(0, 0) == (len(ids) - 1, 0)
    assert prompt.position_of(0, 3) == (len(ids) + 2, 0)
    assert prompt.room(0, 64) == 64 - len(ids) + 1
    assert prompt.ends == {tokenizer.special["eos"]}


@pytest.mark.parametrize("causal", [False, True])
def test_no_prompt_is_cut(tokenizer: TextTokenizer, causal: bool) -> None:
    text = "paper " * 9
    size = len(tokenizer.encode(text)) + (0 if causal else 2)  # [CLS], and [gMASK] at the end
    make_prompt(text, tokenizer, Reading(causal=causal, positions=size))
    if not causal:
        size = len(make_prompt(text, tokenizer, BLANKS).context)
    with pytest.raises(
        UserError, match=rf"\"paper .* has {size:,} tokens, .* has {size - 1:,} pos"
    ):
        make_prompt(text, tokenizer, Reading(causal=causal, positions=size - 1))


def test_files(tmp_path: Path) -> None:
    plain, lines = tmp_path / "prompts.txt", tmp_path / "prompts.jsonl"
    plain.write_text("one [MASK]\r\n\n  two \n", "utf-8-sig")
    lines.write_text('{"prompt": "one\\ntwo", "id": 3}\n\n{"prompt": ""}\n')
    assert read_prompts(plain) == ["one [MASK]", "  two "]
    assert read_prompts(lines) == ["one\ntwo", ""]
