import hashlib
import json
import random
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pipelines.filters.classifier import Classifier
from shards.console import run_module
from tests.pipelines.quality.models import BAD, GOOD
from tests.pipelines.runs import page, write_wudao

main = partial(run_module, "pipelines.train_classifier")

SMALL = ["--dimensions", "8", "--buckets", "1000", "--epochs", "20", "--learning-rate", "0.5"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of two kinds as JSON lines, some of them with words that fastText takes for labels."""
    folder = tmp_path_factory.mktemp("texts")
    choose = random.Random(0)
    for name, sentences in (("good", GOOD), ("web", BAD)):
        words = [*" ".join(sentences).split(), "a", "b", "c"]
        (folder / name).mkdir()
        texts = [" ".join(choose.choices(words, k=20)) for _ in range(300)]
        texts[:20] = [f"__label__cc\n{text} __label__hq" for text in texts[:20]]
        lines = "".join(json.dumps({"text": text, "body": text}) + "\n" for text in texts)
        (folder / name / "a.jsonl").write_text(lines)
    return folder


def command(folders: Path, output: Path, *more: str) -> list[str]:
    inputs = ["--positive", str(folders / "good"), "--negative", str(folders / "web")]
    return [*inputs, "--output", str(output), *SMALL, *more]


def test_from_two_folders_to_a_model_with_its_figures(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out" / "quality.bin"
    assert main(command(folders, output)) == 0
    out, err = capsys.readouterr()
    assert re.search(
        r"quality.bin: 0.\d MB, trained on \d+ hq \(held out: \d+\), \d+ cc \(held out: \d+\)", out
    )
    assert f"--classifier '{output}:hq>=0.5'" in out
    assert "web/a.jsonl (1 of 1)" in err
    report = json.loads(output.with_suffix(".json").read_text())
    assert report["sha256"] == hashlib.sha256(output.read_bytes()).hexdigest()
    sides = report["sides"]
    for side in sides.values():
        assert side["trained_on"] + side["held_out"] == 300
        assert 10 < side["held_out"] < 60
    assert sides["positive"]["inputs"] == [str(folders / "good")]
    rows = {row["threshold"]: row for row in report["held_out"]}
    assert rows[0.5]["precision"] > 0.95
    assert rows[0.5]["recall"] > 0.95
    assert rows[0.5]["negatives_kept"] < 0.05
    recalls = [row["recall"] for row in report["held_out"]]
    assert recalls == sorted(recalls, reverse=True)
    (scores,) = Classifier([f"{output}:hq"]).score([*GOOD, *BAD], ["en"] * 4).values()
    assert ((scores > 0.5) == np.array([True, True, False, False])).all()


def test_the_same_texts_and_options_give_the_same_bytes(folders: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / f"{number}.bin" for number in range(3)]
    for output, seed in zip(outputs, "001", strict=True):
        assert main(command(folders, output, "--seed", seed)) == 0
    one, same, other = (output.read_bytes() for output in outputs)
    assert one == same != other


def test_any_corpus_field_and_label_will_do(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_wudao(tmp_path / "in" / "part-1.json", [page(number) for number in range(60)])
    flags = ["--positive", f"zh=wudao:{tmp_path / 'in'}", "--positive-label", "wiki"]
    flags += ["--negative", str(folders / "web"), "--text-field", "body"]
    output = tmp_path / "m.bin"
    assert main([*flags, *SMALL, "--character-ngrams", "3", "--output", str(output)]) == 0
    capsys.readouterr()
    text = page(99)["content"]
    (scores,) = Classifier([f"{output}:wiki"]).score([text, BAD[0]], ["zh", "en"]).values()
    assert scores[0] > 0.9
    assert scores[1] < 0.1
    output.unlink()
    output.with_suffix(".json").unlink()
    assert main([*flags, *SMALL, "--output", str(output)]) == 0
    assert "a script without spaces" in capsys.readouterr().out


def test_a_model_or_report_that_is_there_stays(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.json").write_text("mine")
    assert main(command(folders, tmp_path / "m.bin")) == 2
    assert "m.json exists already" in capsys.readouterr().err
    assert (tmp_path / "m.json").read_text() == "mine"


def test_without_the_library_the_error_names_the_extra(
    folders: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fasttext_new", None)
    assert main(command(folders, tmp_path / "m.bin")) == 2
    assert "pip install 'corpusmill[fast]'" in capsys.readouterr().err
