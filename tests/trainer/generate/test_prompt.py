import pytest

from shards.errors import UserError
from trainer.generate.prompt import make_prompt
from trainer.tokenizer import PromptFormat, TextTokenizer

BLANKS = PromptFormat(causal=False, positions=65)


def test_without_task_masks(tokenizer: TextTokenizer) -> None:
    plain = PromptFormat(causal=False, positions=65, task_mask=False)
    special = tokenizer.special
    prompt = make_prompt("Fold six", tokenizer, plain)
    assert list(prompt.context[-2:]) == [special["mask"], special["eos"]]
    with pytest.raises(UserError, match=r"has \[gMASK\], and the model .* without task masks"):
        make_prompt("Fold [MASK] and [gMASK]", tokenizer, plain)


@pytest.mark.parametrize("causal", [False, True])
def test_no_prompt_is_cut(tokenizer: TextTokenizer, causal: bool) -> None:
    text = "paper " * 9
    size = len(tokenizer.encode(text)) + (0 if causal else 2)  # plus [CLS], and [gMASK] at the end
    make_prompt(text, tokenizer, PromptFormat(causal=causal, positions=size))
    if not causal:
        size = len(make_prompt(text, tokenizer, BLANKS).context)
    with pytest.raises(
        UserError, match=rf"\"paper .* has {size:,} tokens, .* has {size - 1:,} pos"
    ):
        make_prompt(text, tokenizer, PromptFormat(causal=causal, positions=size - 1))
