"""A run can be opened and continued after its data were moved."""

import json
import shutil
from pathlib import Path

import pytest

from tests.nightly import a_few
from tests.trainer.runs import Trial
from trainer.import_weights.loaded_model import resolve_model
from trainer.load_options import LoadOptions

pytestmark = pytest.mark.slow

FLAGS = ("--length", "64", "--batch-size", "4", "--eval-every", "0")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset and a run on it that has two checkpoints."""
    trial = Trial.on_corpus(tmp_path_factory.mktemp("trained"), *FLAGS)
    trial.run("--max-steps", 2, "--save", "run", "--save-every", 1)
    return trial.folder


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
    if recorded == "as given":  # as earlier versions recorded it
        content["state"]["run"]["mixes"][0]["data"] = ["data@1"]
        list_of_files.write_text(json.dumps(content))
    assert resolve_model(tmp_path / "run", LoadOptions()).data == (str(place / "data"),)
    trial = Trial(tmp_path, (*FLAGS, "--model", str(place / "model.json")))
    trial.run("--data", "../data", "--save", tmp_path / "run", "--max-steps", 2, code=2)
    (tmp_path / "moved").symlink_to(place / "data")
    trial.run("--data", "moved", "--save", "run", "--max-steps", 3)
    assert resolve_model(tmp_path / "run", LoadOptions()).data == (str(tmp_path / "moved"),)
