"""Whole runs with a classifier and a language model."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pipelines.run.build import build
from pipelines.text import TextOptions
from shards.console import run_module
from shards.manifest import Manifest
from tests.pipelines.quality.models import BAD, GOOD, write_arpa, write_classifier

SAMPLE = Path(__file__).parents[3] / "pipelines" / "sample" / "sample.model"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of good and bad words, a classifier that tells them apart, and a language model."""
    folder = tmp_path_factory.mktemp("scorers")
    choose = random.Random(0)
    words = [" ".join(GOOD).split(), " ".join(BAD).split()]
    texts = [
        " ".join(choose.choice(words[choose.random() < number / 200]) for _ in range(30))
        for number in range(200)
    ]
    (folder / "in").mkdir()
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "in" / "a.jsonl").write_text(lines)
    write_classifier(folder / "quality.bin", {"hq": GOOD, "cc": BAD})
    write_arpa(folder / "en.arpa", {"▁the": -1.0, "▁of": -1.5, "▁energy": -2.0})
    return folder


def options(world: Path, output: Path, **changes: Any) -> TextOptions:
    plain: dict[str, Any] = {
        "input": (str(world / "in"),),
        "output": output,
        "tokenizer": f"sentencepiece:{SAMPLE}",
        "languages": ("en",),
        "language_threshold": 0.0,
        "validation": 0.0,
        "shards": 1,
        **changes,
    }
    return TextOptions(**plain)


def make(world: Path, output: Path, **changes: Any) -> Manifest:
    return build("pipelines.text", options(world, output, **changes))


def then(capsys: pytest.CaptureFixture[str], dataset: Path, *flags: str) -> dict[str, Any]:
    assert run_module("pipelines.rethreshold", [str(dataset), "--json", *flags]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer["sources"]["text"]


def test_the_classifier_drops_and_other_bounds_follow_from_the_audit_table(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = world / "quality.bin"
    made = make(world, tmp_path / "one", classifier=(f"{model}:hq>=0.7",))
    (account,) = made.generations[0].accounting.values()
    dropped = account["dropped"]["classifier-low-hq"]
    assert 20 < dropped < 180
    forecast = then(capsys, tmp_path / "one", "--threshold", "classifier.min_hq=0.3")
    make(world, tmp_path / "two", classifier=(f"en={model}:hq>=0.3",))
    real = then(capsys, tmp_path / "two")
    kept = forecast["before_dedup"]["documents"]
    assert kept["exact"]
    assert kept["then"] == real["before_dedup"]["documents"]["now"] > kept["now"]
    (step,) = [step for step in forecast["steps"] if step["step"] == "classifier.min_hq"]
    assert step["bounds"] == ["0.7", "0.3"]
    assert step["drops"][0] == dropped
