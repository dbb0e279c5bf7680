"""Tokenizers of models on the hub, read through the library's own cache."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.pipelines.inputs.fake_hub import Repository, serve

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
"""The hub's library reads its environment once, so each environment is a process."""


def load(home: Path, endpoint: str, *specs: str, offline: str = "0") -> list[str]:
    environment = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": endpoint}
    environment["HF_HUB_OFFLINE"] = offline
    environment.pop("HF_TOKEN", None)
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *specs],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_model_of_the_hub_has_its_tokenizer(
    tmp_path: Path, bert_lines_path: Path, hf_path: Path
) -> None:
    files = {"vocab.txt": bert_lines_path.read_bytes(), "config.json": b"{}"}
    models: Mapping[str, Repository] = {
        "google-bert/bert": Repository(files=files),
        "o/both": Repository(files={**files, "tokenizer.json": hf_path.read_bytes()}),
        "o/none": Repository(files={"config.json": b"{}"}),
        "o/gated": Repository(files=files, gated=True),
    }
    with serve(models) as (endpoint, hub):
        found = load(
            tmp_path,
            endpoint,
            "hf:google-bert/bert",
            f"hf:{bert_lines_path}",
            "hf:o/both@v1",
            f"hf:{hf_path}",
            *("hf:o/none", "hf:o/gated", "hf:o/missing", "hf:o/both@v9"),
        )
        assert not any("/config.json" in request for request in hub.requests)
    assert found[0] == found[1]
    assert found[2] == found[3]
    for told, why in zip(
        found[4:],
        ("it has no tokenizer.json", "it is gated", "there is no such model", "no revision v9"),
        strict=True,
    ):
        assert why in told
        assert "Write hf:OWNER/NAME[@REVISION], or hf:FOLDER" in told
    # What the cache has needs no hub; what it has not says so.
    specs = ("hf:google-bert/bert", "hf:o/both@v1", "hf:o/new")
    again = load(tmp_path, endpoint, *specs, offline="1")
    assert again[:2] == [found[0], found[2]]
    assert "the hub cannot be reached" in again[2]
