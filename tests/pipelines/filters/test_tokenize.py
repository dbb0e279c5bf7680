import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from pipelines.corpus.recipe import SAMPLE
from pipelines.filters.step import split_verdict
from pipelines.filters.tokenize import Tokenize

CHINESE = "清晨的集市上，卖豆腐的老人把担子放下。"
ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."


def batch(*texts: str) -> pa.RecordBatch:
    """Return what the step reads of a batch."""
    return pa.record_batch(
        {
            "position": pa.array(range(len(texts))),
            "prompt": pa.array([""] * len(texts), pa.large_string()),
            "text": pa.array(texts, pa.large_string()),
        }
    )


@pytest.fixture(scope="module")
def tokenize() -> Tokenize:
    return Tokenize(f"sentencepiece:{SAMPLE / 'sample.model'}")


def test_only_a_text_that_the_tokenizer_fails_on_is_quarantined(
    tokenize: Tokenize, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):
        """Like pyo3's, it is no Exception."""

    whole = tokenize(batch(CHINESE, ENGLISH)).batch["tokens"].to_pylist()
    plain = tokenize.tokenizer._model.encode

    def failing(texts: Sequence[str]) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
        if "poison" in texts:
            raise PanicException("capacity overflow")
        return plain(texts)

    model = dataclasses.replace(tokenize.tokenizer._model, encode=failing)
    monkeypatch.setattr(tokenize.tokenizer, "_model", model)
    kept, dropped = split_verdict(tokenize(batch(CHINESE, "poison", ENGLISH)))
    assert kept["tokens"].to_pylist() == whole
    assert dropped.reasons.to_pylist() == ["tokenizer-failed"]
    assert dropped.batch["position"].to_pylist() == [1]
