import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.corpus.spec import SAMPLE
from pipelines.steps.step import split_result
from pipelines.steps.tokenize import TokenizeStep
from pipelines.tokenizers.end_of_text import EndOfText
from pipelines.tokenizers.sentencepiece import sentencepiece_model
from pipelines.tokenizers.tokenizer import Tokenizer
from tests.golden.corpus_models import byte_tokenizer

MODEL = SAMPLE / "sample.model"
CHINESE = "清晨的集市上，卖豆腐的老人把担子放下。"
ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."


def batch(*texts: str) -> pa.RecordBatch:
    """Return a batch with the columns that the step reads."""
    return pa.record_batch(
        {
            "position": pa.array(range(len(texts))),
            "prompt": pa.array([""] * len(texts), pa.large_string()),
            "text": pa.array(texts, pa.large_string()),
        }
    )


def test_unknown_tokens_are_counted(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "river"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    tokenize = TokenizeStep(f"hf:{tmp_path / 'vocab.txt'}")
    rows = batch("the river", "", "the x y river", "z")
    index = rows.schema.get_field_index("prompt")
    rows = rows.set_column(index, "prompt", pa.array(["", "q", "", "r the"], pa.large_string()))
    assert tokenize(rows).batch["unknown_tokens"].to_pylist() == [0, 1, 2, 2]


def test_what_spells_everything_counts_no_unknown_tokens(tmp_path: Path) -> None:
    byte_tokenizer(tmp_path)
    tokenize = TokenizeStep(f"tiktoken:{tmp_path / 'merges.txt'}")
    assert tokenize(batch(CHINESE)).batch["unknown_tokens"].to_pylist() == [None]


def test_only_a_text_that_the_tokenizer_fails_on_is_quarantined() -> None:
    class PanicException(BaseException):
        """An error that, like pyo3's, is not a subclass of Exception."""

    def failing(texts: Sequence[str]) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
        if "poison" in texts:
            raise PanicException("capacity overflow")
        return plain.encode(texts)

    plain = sentencepiece_model(MODEL.read_bytes(), name=MODEL, end=EndOfText(), fast=False)
    tokenize = TokenizeStep(f"sentencepiece:{MODEL}")
    whole = tokenize(batch(CHINESE, ENGLISH)).batch["tokens"].to_pylist()
    tokenize.tokenizer = Tokenizer(dataclasses.replace(plain, encode=failing))
    kept, dropped = split_result(tokenize(batch(CHINESE, "poison", ENGLISH)))
    assert kept["tokens"].to_pylist() == whole
    assert dropped.reasons.to_pylist() == ["tokenizer-failed"]
    assert dropped.batch["position"].to_pylist() == [1]
