import hashlib
import json
import random
import sys
from functools import partial
from pathlib import Path

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


def test_a_report_says_which_texts_were_trained_on_and_held_out(
    folders: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out" / "quality.bin"
    assert main(command(folders, output)) == 0
    report = json.loads(output.with_suffix(".json").read_text())
    assert report["sha256"] == hashlib.sha256(output.read_bytes()).hexdigest()
    for name, side in zip(("good", "web"), report["sides"].values(), strict=True):
        assert side["inputs"] == [str(folders / name)]
        assert side["trained_on"] + side["held_out"] == 300
        assert 10 < side["held_out"] < 60
    rows = {row["threshold"]: row for row in report["held_out"]}
    assert min(rows[0.5]["precision"], rows[0.5]["recall"]) > 0.95
    recalls = [row["recall"] for row in report["held_out"]]
    assert recalls == sorted(recalls, reverse=True)


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


def test_without_the_library_the_error_names_the_extra(
    folders: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fasttext_new", None)
    assert main(command(folders, tmp_path / "m.bin")) == 2
    assert "pip install 'corpusmill[fast]'" in capsys.readouterr().err
