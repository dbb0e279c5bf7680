"""A trained model opens with its tokenizer, which its data keep."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from shards.errors import UserError
from tests.nightly import a_few
from tests.pipelines.tokenizers.trained import train
from tests.trainer.runs import Trial
from trainer.opening import Opening
from trainer.tokenizer import TextTokenizer
from trainer.trained import find_origin, open_trained

pytestmark = pytest.mark.slow

SAMPLE = Path(__file__).parents[2] / "pipelines" / "sample" / "sample.model"

FLAGS = ("--model", "tiny", "--length", "64", "--batch-size", "2")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the built-in sample as a dataset, and a run on it with two checkpoints."""
    folder = tmp_path_factory.mktemp("trained")
    command = [sys.executable, "-m", "pipelines.wudao", "--output", str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[2])
    trial = Trial(folder, FLAGS)
    trial.run("--data", "data", "--max-steps", 2, "--save", "run", "--save-every", 1)
    yield folder
    for running in trial.started:
        running.kill()


def test_a_run_opens_with_its_newest_weights_and_the_tokenizer_of_its_data(place: Path) -> None:
    trained = open_trained(place / "run", Opening(device="cpu"))
    assert (trained.step, trained.objective) == (2, "glm")
    assert trained.model.word_embeddings.weight.device == torch.device("cpu")
    assert not trained.model.training
    assert trained.model.attention == "sdpa"
    given = TextTokenizer(f"sentencepiece:{SAMPLE}")
    text = "大模型 and a small one"
    assert trained.tokenizer.encode(text) == given.encode(text)
    assert trained.tokenizer.decode(given.encode(text)).strip() == text
    assert trained.tokenizer.sha256 == given.sha256


def test_a_tokenizer_of_other_data_is_refused(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.model"
    other.write_bytes(train(vocab_size=190))
    with pytest.raises(UserError, match=r"is not the one that .*step-2 was trained with, sample"):
        open_trained(place / "run", Opening(tokenizer=f"sentencepiece:{other}", device="cpu"))


@pytest.mark.parametrize("recorded", a_few(["as given", "absolute"], of_each=2))
def test_its_data_are_found_from_other_folders(
    place: Path, tmp_path: Path, recorded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(place / "run", tmp_path / "run")
    list_of_files = tmp_path / "run" / "step-2" / "whole-00000.json"
    content = json.loads(list_of_files.read_text())
    data = f"{place / 'data'}@1"
    assert content["state"]["run"]["mixes"][0]["data"] == [data]
    monkeypatch.chdir(place)
    if recorded == "as given":  # as earlier versions did
        content["state"]["run"]["mixes"][0]["data"] = ["data@1"]
        list_of_files.write_text(json.dumps(content))
    assert find_origin(tmp_path / "run", Opening()).data == (str(place / "data"),)
    trial = Trial(tmp_path, FLAGS)
    trial.run("--data", "../data", "--save", tmp_path / "run", "--max-steps", 2, code=2)
    (tmp_path / "moved").symlink_to(place / "data")
    trial.run("--data", "moved", "--save", "run", "--max-steps", 3)
    assert find_origin(tmp_path / "run", Opening()).data == (str(tmp_path / "moved"),)
