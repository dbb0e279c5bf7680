"""Runs with filters of the user's own."""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.code import code_hash
from pipelines.run.build import build
from pipelines.wudao import WudaoOptions
from shards.console import run_module
from shards.errors import UserError
from shards.manifest import read_manifest
from tests.pipelines.runs import MODULE, shipped, small

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


def test_they_drop_change_and_measure(options: WudaoOptions) -> None:
    build(MODULE, options)
    report = json.loads((options.output / "report.json").read_text())
    (rows,) = report["funnel"].values()
    assert {(row["stage"], row["reason"]): row["rows"] for row in rows} == {("", ""): 4}
    (audit,) = options.output.glob("*/audit/*.parquet")
    table = pq.read_table(audit)
    assert sorted(table["Shouted.marks"].to_pylist()) == [0, 0, 1, 2]
    assert sorted(table["Shouted.changed"].to_pylist()) == [0, 0, 1, 1]
    assert set(report["cpu_seconds"]["wudao"]) >= {"Shouted", "no_dogs"}
    first = shipped(options.output)
    # In the other order the dog is seen before it is shouted at.
    turned = ("own_filters_run:no_dogs", "own_filters_run:Shouted?mark=!")
    other = small(options.output, *options.input, filter=turned, min_chars=1, overwrite=True)
    build(MODULE, other)
    report = json.loads((options.output / "report.json").read_text())
    (rows,) = report["funnel"].values()
    assert {(row["stage"], row["reason"]): row["rows"] for row in rows} == {
        ("filter", "no_dogs:dog"): 1,
        ("", ""): 3,
    }
    assert shipped(options.output) != first


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


def test_what_comes_after_a_run_knows_them(
    options: WudaoOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    build(MODULE, options)
    assert (
        run_module("pipelines.rethreshold", [str(options.output), "--language-threshold", "0.5"])
        == 0
    )
    assert "kept" in capsys.readouterr().out


def test_bounds_can_be_tried_on_the_audit_table(
    options: WudaoOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    bounded = small(
        options.output,
        *options.input,
        filter=("own_filters_run:no_dogs", "own_filters_run:Legs?max_number=3"),
        quality=("glm",),
        threshold=("glm.min_chars=12",),
        min_chars=1,
    )
    build(MODULE, bounded)
    (audit,) = options.output.glob("*/audit/*.parquet")
    table = pq.read_table(audit).to_pylist()
    assert all(row["Legs.number"] is not None and row["glm.chars"] is not None for row in table)
    report = json.loads((options.output / "report.json").read_text())
    (rows,) = report["funnel"].values()
    assert [(row["stage"], row["reason"]) for row in rows if row["reason"][:4] == "Legs"] == [
        ("quality", "Legs-high-number")
    ]
    capsys.readouterr()
    assert (
        run_module(
            "pipelines.rethreshold", [str(options.output), "--threshold", "Legs.max_number=5"]
        )
        == 0
    )
    assert "Legs.max_number" in capsys.readouterr().out
    assert (
        run_module("pipelines.rethreshold", [str(options.output), "--threshold", "Legs.most=5"])
        == 2
    )
    assert 'Legs has no threshold "most"' in capsys.readouterr().err
