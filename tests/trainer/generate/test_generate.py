from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from shards.console import run_module
from tests.trainer.finetune.lessons import write_model
from trainer.generate.command import Generate
from trainer.generate.decoder import CachedDecoder
from trainer.generate.decoding import Decoding
from trainer.generate.prompt import make_prompt
from trainer.generate.text_generator import TextGenerator, text_of
from trainer.model.sizes import ModelConfig
from trainer.tokenizer import PromptFormat, TextTokenizer

SHAPE = ModelConfig(
    num_layers=2, hidden_size=32, num_heads=2, vocab_size=4096, max_positions=64, init_std=0.2
)
TWO = ["Fold six [MASK] of paper.", "Bread [sMASK] and [MASK] [gMASK]", "Paper"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The flags that make the command use a published model."""
    _, *flags = write_model(tmp_path_factory.mktemp("published") / "model", SHAPE)
    return [*flags, "--dtype", "fp32", "--device", "cpu", "--max-new-tokens", "6"]


def main(words: list[str]) -> int:
    return run_module("trainer.generate", words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a", "b"], (("a", "b"), (), None)),
        (["--prompt", "a"], ((), ("a",), None)),
        (["--prompts", "a"], ((), (), Path("a"))),
    ],
)
def test_one_kind_of_prompt_is_enough(words: list[str], expected: tuple[object, ...]) -> None:
    command = Generate.parse(["run", *words], "trainer.generate")
    assert (command.texts, command.prompt, command.prompts) == expected


class Speller:
    """Stands in for a model: the next token of a given text is always the most probable."""

    config = replace(SHAPE, block_positions=False)
    word_embeddings = SimpleNamespace(weight=torch.zeros(1))

    def __init__(self, tokens: list[int]) -> None:
        self.left = iter(tokens)

    def __call__(self, _: CachedDecoder) -> torch.Tensor:
        return 9.0 * torch.nn.functional.one_hot(torch.tensor([next(self.left)]), 4096)


def test_characters_come_whole(tokenizer: TextTokenizer) -> None:
    tokens = tokenizer.encode("a🜁b")  # not a piece, so each byte is a token
    prompt = make_prompt("", tokenizer, PromptFormat(causal=True, positions=64))
    for spelt, end in ((tokens, "a🜁b"), (tokens[:-2], "a\ufffd")):
        speller: Any = Speller(spelt)
        decoding = Decoding(max_new_tokens=len(spelt))
        generator = TextGenerator(model=speller, tokenizer=tokenizer, decoding=decoding)
        (found,) = generator.generate([prompt], batch_size=1)
        assert found.text.endswith(end)


@pytest.mark.parametrize("flags", [[], ["--top-k", "5"], ["--beams", "2"]])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_diverged_writes_nothing(
    published: list[str],
    flags: list[str],
    value: float,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "mp_rank_00_model_states.pt"
    content = torch.load(Path(published[0], name))
    content["module"]["transformer.final_layernorm.bias"][0] = value
    torch.save(content, tmp_path / name)
    assert main([str(tmp_path), *published[1:], "Fold", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "the model's logits are NaN or infinite" in captured.err
    assert captured.err.count("\n") == 1


def test_rows_that_are_no_tokens(tokenizer: TextTokenizer) -> None:
    size = tokenizer.vocabulary_size
    assert text_of([size + 3], tokenizer) == f"⟨{size + 3}⟩"
