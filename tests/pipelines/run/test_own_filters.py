"""Runs with filters of the user's own."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.corpus.code import code_hash
from pipelines.run.build import build
from pipelines.wudao import WudaoOptions
from shards.console import run_module
from shards.errors import UserError
from shards.manifest import read_manifest
from tests.pipelines.runs import MODULE, small

FILTERS = """
def no_dogs(batch):
    return ["dog" if "dog" in text else None for text in batch["text"].to_pylist()]

class Shouted:
    changes_text = True
    metrics = ("marks",)
    def __init__(self, mark="!"):
        self.mark = mark
    def __call__(self, batch):
        texts = batch["text"].to_pylist()
        return {
            "text": [text.upper() if self.mark in text else text for text in texts],
            "marks": [text.count(self.mark) for text in texts],
        }

class Legs:
    metrics = ("number",)
    bounds = {"max_number": 2}
    def __call__(self, batch):
        return {"number": [2 if "bird" in text else 4 for text in batch["text"].to_pylist()]}
"""
TEXTS = ["A cat sat down here.", "A dog barked!", "A bird sang! And sang!", "A mole dug."]


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WudaoOptions:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "own_filters_run.py").write_text(FILTERS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own_filters_run", raising=False)
    code_hash.cache_clear()
    records = [{"id": n, "title": "", "content": text} for n, text in enumerate(TEXTS)]
    (tmp_path / "part-1.json").write_text(json.dumps(records))
    filters = ("clean=own_filters_run:Shouted?mark=!", "own_filters_run:no_dogs")
    return small(tmp_path / "out", tmp_path / "part-1.json", filter=filters, min_chars=1)


def test_a_dataset_is_not_continued_with_other_code(options: WudaoOptions, tmp_path: Path) -> None:
    build(MODULE, options)
    recorded = read_manifest(options.output).options["filter"]
    assert [name.partition("=")[0] for name in recorded] == ["1. clean", "2. quality"]
    build(MODULE, options)
    path = tmp_path / "code" / "own_filters_run.py"
    path.write_text(FILTERS + "\n# Another day.\n")
    code_hash.cache_clear()
    with pytest.raises(
        UserError, match=r"the code of --filter \(.*own_filters_run.* was edited since"
    ):
        build(MODULE, options)


def test_bounds_can_be_tried_on_the_audit_table(
    options: WudaoOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    bounded = replace(options, filter=(*options.filter, "own_filters_run:Legs?max_number=5"))
    build(MODULE, bounded)
    assert (
        run_module(
            "pipelines.rethreshold", [str(options.output), "--threshold", "Legs.max_number=3"]
        )
        == 0
    )
    assert "Legs.max_number" in capsys.readouterr().out
    assert (
        run_module("pipelines.rethreshold", [str(options.output), "--threshold", "Legs.most=5"])
        == 2
    )
    assert 'Legs has no threshold "most"' in capsys.readouterr().err
