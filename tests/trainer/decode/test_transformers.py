"""What transformers generates with the same weights."""

from typing import Any

import pytest
import torch

from tests.trainer.decode.small import EOS, causal
from trainer.decode.decoding import Decoding
from trainer.decode.reader import Reader
from trainer.decode.search import fill
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.weights.gpt2 import PREFIX, is_transposed, name_in_transformers

SHAPE = ModelConfig(
    num_layers=2,
    hidden_size=64,
    num_heads=4,
    vocab_size=128,
    max_positions=64,
    block_positions=False,
    hidden_dropout=0.0,
    attention_dropout=0.0,
    init_std=0.2,
)
LIMIT = 20
TEXTS = ([5, 6, 7], [44, 9, 1, 2, 3, 90, 17, 5], [3], [100, 99, 98, 97, 1, 1, 2])


@pytest.fixture(scope="module")
def models() -> tuple[GLM, Any]:
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415 - takes seconds

    torch.manual_seed(0)
    ours = GLM(SHAPE).eval().requires_grad_(False)
    config = GPT2Config(
        vocab_size=SHAPE.vocab_size,
        n_positions=SHAPE.max_positions,
        n_embd=SHAPE.hidden_size,
        n_layer=SHAPE.num_layers,
        n_head=SHAPE.num_heads,
        bos_token_id=EOS,
        eos_token_id=EOS,
        pad_token_id=EOS,
    )
    theirs = GPT2LMHeadModel(config).eval()
    weights = {
        PREFIX + name_in_transformers(name): value.t() if is_transposed(name) else value
        for name, value in ours.state_dict().items()
    }
    theirs.load_state_dict({**weights, "lm_head.weight": ours.word_embeddings.weight})
    return ours, theirs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"min_new_tokens": LIMIT}, {"min_new_tokens": LIMIT}),
        ({"beams": 4}, {"num_beams": 4, "length_penalty": 0.0}),
        (
            {"beams": 3, "min_new_tokens": 5},
            {"num_beams": 3, "min_new_tokens": 5, "length_penalty": 0.0},
        ),
    ],
)
def test_the_same_tokens(
    models: tuple[GLM, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    decoding = Decoding(max_new_tokens=LIMIT, **ours)
    reader = Reader(models[0], SHAPE, torch.device("cpu"))
    prompts = [causal(text) for text in TEXTS]
    found = fill(reader, prompts, decoding)
    for text, (filling,) in zip(TEXTS, found, strict=True):
        tokens = torch.tensor([text])
        whole = models[1].generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=False,
            max_new_tokens=LIMIT,
            **theirs,
        )
        written = whole[0, len(text) :].tolist()
        assert list(filling.tokens) == written[: written.index(EOS) if EOS in written else None]
