"""Corpora and steps as transforms: their seams, workers' models and code, batches in transit."""

from dataclasses import replace

import pytest

from pipelines.transforms import (
    Clean,
    Tokenize,
)
from shards.errors import UserError
from tests.pipelines.write.pipes import TOKENIZER


def test_a_process_loads_a_model_once_and_refuses_another(monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = Tokenize(TOKENIZER).specs
    assert made.loaded() is made.loaded()
    other = replace(made, identity="other", driver_facts={"tokenizer": "another"})
    with pytest.raises(UserError, match=r"this worker has tokenizer \w{64}, the pipeline was made"):
        other.loaded()
    (clean,) = Clean().specs
    monkeypatch.setattr("pipelines.corpus.versions.version", lambda _: "0.1")
    with pytest.raises(UserError, match=r"this worker has ftfy 0\.1, the pipeline was made with "):
        replace(clean, identity="clean elsewhere").loaded()
