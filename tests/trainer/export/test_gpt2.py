"""Exports that transformers itself opens."""

from pathlib import Path

import pytest
import torch

from pipelines.tokenizers.agreement import CHECK_TEXTS
from tests.trainer.export.tokens import put_tokenizer
from tests.trainer.saved import GPT2_SHAPE, causal_logits, random_model, save_run
from trainer.export.command import Export
from trainer.export.export import export
from trainer.opening import Opening
from trainer.tokenizer import TextTokenizer
from trainer.trained import find_origin, find_tokenizer

pytestmark = pytest.mark.slow  # transformers takes seconds to import


@pytest.mark.parametrize("shard_bytes", [None, 20_000])
def test_gpt2_of_transformers_gives_the_same_logits(
    tmp_path: Path, shard_bytes: int | None
) -> None:
    from transformers import GPT2LMHeadModel  # noqa: PLC0415 - slow

    model = random_model(GPT2_SHAPE)
    run = save_run(tmp_path / "run", model, objective="causal")
    export(Export(path=run, to="hf", output=tmp_path / "out", shard_bytes=shard_bytes))
    theirs, found = GPT2LMHeadModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(found.values())
    tokens = torch.randint(GPT2_SHAPE.vocab_size, (3, GPT2_SHAPE.max_positions))
    with torch.no_grad():
        difference = theirs(tokens).logits - causal_logits(model, tokens)
    assert difference.abs().max() < 1e-5


def test_rows_of_padding_are_left_out(tmp_path: Path) -> None:
    from transformers import GPT2LMHeadModel  # noqa: PLC0415 - slow

    model = random_model(GPT2_SHAPE)
    run = save_run(tmp_path / "run", model, objective="causal")
    export(Export(path=run, to="hf", output=tmp_path / "out", vocabulary=262, dtype="bf16"))
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path / "out")
    assert theirs.dtype == torch.bfloat16
    tokens = torch.randint(262, (2, 9))
    with torch.no_grad():
        logits = theirs.float()(tokens).logits
        difference = logits - causal_logits(model.bfloat16().float(), tokens)[..., :262]
    assert difference.abs().max() < 1e-5


def test_the_tokenizer_gives_the_same_ids(tmp_path: Path) -> None:
    from transformers import AutoTokenizer, GenerationConfig  # noqa: PLC0415 - slow

    spec = put_tokenizer(tmp_path)
    run = save_run(tmp_path / "run", random_model(GPT2_SHAPE), objective="causal")
    lines = export(Export(path=run, to="hf", output=tmp_path / "out", tokenizer=spec))
    assert lines[-1].startswith(str(tmp_path / "out" / "tokenizer_config.json"))
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path / "out"), TextTokenizer(spec)
    for text in ("the one on the moon, then", *CHECK_TEXTS):
        ids = ours.encode(text)
        assert theirs.encode(text, split_special_tokens=True, truncation=False) == ids
        assert theirs.decode(ids) == ours.decode(ids)
    assert theirs.eos_token_id == ours.special["eos"] == 261
    assert (
        find_tokenizer(find_origin(tmp_path / "out", Opening()), Opening()).special == ours.special
    )
    assert GenerationConfig.from_pretrained(tmp_path / "out").eos_token_id == 261
