"""Corpora and steps as transforms: seams, models and code of workers, batches on their way."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.transforms import (
    Clean,
    ReadCorpus,
    Tokenize,
)
from shards.errors import UserError
from tests.pipelines.transforms.pipes import TOKENIZER, running


def test_a_process_loads_a_model_once_and_refuses_another(monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = Tokenize(TOKENIZER).models
    assert made.loaded() is made.loaded()
    other = replace(made, identity="other", known={"tokenizer": "another"})
    with pytest.raises(UserError, match=r"this worker has tokenizer \w{64}, the pipeline was made"):
        other.loaded()
    (clean,) = Clean().models
    monkeypatch.setattr("pipelines.map.mapper.version", lambda _: "0.1")
    with pytest.raises(UserError, match=r"this worker has ftfy 0\.1, the pipeline was made with "):
        replace(clean, identity="clean elsewhere").loaded()


def test_splits_that_do_not_join_up_are_told(tmp_path: Path) -> None:
    inner = '{"content": "' + "x" * 200 + '"}'
    outer = '{"content": "' + "y" * 150 + '", "nested": [' + ", ".join([inner] * 9) + "]}"
    path = tmp_path / "nested.json"
    path.write_text(f"[{', '.join([outer] * 4)}]")
    message = r"nested\.json: its splits do not join up, .*split_bytes=\d+ or more"
    with pytest.raises(Exception, match=message), running() as (pipeline, _):
        _ = pipeline | ReadCorpus("wudao", input=str(path), split_bytes=500)
    with running() as (pipeline, seen):
        read = pipeline | ReadCorpus("wudao", input=str(path))
        seen.watch("kept", read.kept)
    assert sum(batch.num_rows for batch in seen.by_name["kept"]) == 4
