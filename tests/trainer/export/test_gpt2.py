"""transformers itself opens our exports."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pipelines.tokenizers.agreement import CHECK_TEXTS
from tests.golden.corpus_training import tokenizer
from tests.pipelines.tokenizers.trained import train
from tests.trainer.saved import GPT2_SHAPE, TOKENIZER, causal_logits, random_model, save_run
from trainer.export.command import Export
from trainer.export.export import export
from trainer.import_weights.loaded_model import find_tokenizer, resolve_model
from trainer.load_options import LoadOptions
from trainer.tokenizer import TextTokenizer

pytestmark = pytest.mark.slow  # transformers takes seconds to import


@pytest.mark.parametrize(
    ("shard_bytes", "vocabulary", "dtype"),
    [(None, None, "fp32"), (20_000, None, "fp32"), (None, 262, "bf16")],  # 262: no padding
)
def test_gpt2_of_transformers_gives_the_same_logits(
    tmp_path: Path, shard_bytes: int | None, vocabulary: int | None, dtype: str
) -> None:
    from transformers import GPT2LMHeadModel  # noqa: PLC0415 - slow

    model = random_model(GPT2_SHAPE)
    run = save_run(tmp_path / "run", model, objective="causal")
    more: Any = {"shard_bytes": shard_bytes, "vocabulary": vocabulary, "dtype": dtype}
    export(Export(path=run, to="hf", output=tmp_path / "out", **more))
    theirs, found = GPT2LMHeadModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(found.values())
    saved = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    assert theirs.dtype == saved
    size = vocabulary or GPT2_SHAPE.vocab_size
    tokens = torch.randint(size, (3, GPT2_SHAPE.max_positions))
    with torch.no_grad():
        logits = theirs.float()(tokens).logits
        difference = logits - causal_logits(model.to(saved).float(), tokens)[..., :size]
    assert difference.abs().max() < 1e-5


@pytest.mark.parametrize(
    ("spec", "rows", "prefix"),
    [("tiktoken:merges.txt", 512, ""), (TOKENIZER, 4096, " ")],  # SentencePiece adds a space
)
def test_the_tokenizer_gives_the_same_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, rows: int, prefix: str
) -> None:
    from transformers import AutoTokenizer, GenerationConfig  # noqa: PLC0415 - slow

    monkeypatch.chdir(tmp_path)
    tokenizer(tmp_path)
    shape = replace(GPT2_SHAPE, vocab_size=rows)
    run = save_run(tmp_path / "run", random_model(shape), objective="causal")
    lines = export(Export(path=run, to="hf", output=tmp_path / "out", tokenizer=spec))
    assert lines[-1].startswith(str(tmp_path / "out" / "tokenizer_config.json"))
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path / "out"), TextTokenizer(spec)
    for text in ("the one on the moon, then", *CHECK_TEXTS):
        ids = ours.encode(text)
        assert theirs.encode(text, split_special_tokens=True, truncation=False) == ids
        assert (prefix if ids else "") + theirs.decode(ids) == ours.decode(ids)
    assert theirs.eos_token_id == ours.special["eos"]
    assert (
        find_tokenizer(resolve_model(tmp_path / "out", LoadOptions()), LoadOptions()).special
        == ours.special
    )
    assert GenerationConfig.from_pretrained(tmp_path / "out").eos_token_id == theirs.eos_token_id


def test_a_tokenizer_that_normalizes_is_not_exported_and_the_reason_is_given(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.model").write_bytes(train())
    run = save_run(tmp_path / "run", random_model(GPT2_SHAPE), objective="causal")
    spec = f"sentencepiece:{tmp_path / 'own.model'}"
    lines = export(Export(path=run, to="hf", output=tmp_path / "out", tokenizer=spec))
    assert "other ids" in lines[-1]
    assert "train_tokenizer --normalization identity" in lines[-1]
    assert not (tmp_path / "out" / "tokenizer.json").exists()
