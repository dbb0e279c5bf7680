"""Tokenizers of models on the hub, which are read through the hub library's own cache."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.pipelines.read.fake_hub import Repository, answers, serve

LOAD = """
import json, sys
from pipelines.tokenizers.tokenizer import load_tokenizer
from shards.errors import UserError
for spec in sys.argv[1:]:
    try:
        print(json.dumps(load_tokenizer(spec).fingerprint), flush=True)
    except UserError as error:
        print(json.dumps(str(error)), flush=True)
"""


@pytest.mark.slow
def test_a_model_of_the_hub_has_its_tokenizer(tmp_path: Path, models_path: Path) -> None:
    words, level = models_path / "vocab.txt", models_path / "level.json"
    files = {"vocab.txt": words.read_bytes(), "config.json": b"{}"}
    models: Mapping[str, Repository] = {
        "google-bert/bert": Repository(files=files),
        "o/both": Repository(files={**files, "tokenizer.json": level.read_bytes()}),
        "o/named": Repository(
            files={
                "tokenizer.json": level.read_bytes().replace(b"<|endoftext|>", b"<end>"),
                "tokenizer_config.json": b'{"eos_token": "<end>"}',
            }
        ),
        "o/none": Repository(files={"config.json": b"{}"}),
        "o/gated": Repository(files=files, gated=True),
    }
    with serve(models) as (endpoint, hub):
        (tmp_path / "load.py").write_text(LOAD)
        load = partial(answers, tmp_path / "load.py", endpoint, home=tmp_path)
        found = load(
            "hf:google-bert/bert",
            f"hf:{words}",
            "hf:o/both@v1",
            f"hf:{level}",
            "hf:o/named",
            *("hf:o/none", "hf:o/gated", "hf:o/missing", "hf:o/both@v9"),
        )
        assert not any("/config.json" in request for request in hub.requests)
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(found[4]) == len(found[3])  # the fingerprint of the tokenizer
    for told, why in zip(
        found[5:],
        ("it has no tokenizer.json", "it is gated", "there is no such model", "no revision v9"),
        strict=True,
    ):
        assert why in told
        assert "Write hf:OWNER/NAME[@REVISION], or hf:FOLDER" in told
    # Cached files need no hub; for all others, the error says that the hub is needed.
    specs = ("hf:google-bert/bert", "hf:o/both@v1", "hf:o/named", "hf:o/new")
    again = load(*specs, HF_HUB_OFFLINE="1")
    assert again[:3] == [found[0], found[2], found[4]]
    assert "the hub cannot be reached" in again[3]
