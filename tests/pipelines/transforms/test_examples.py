"""The pipelines of docs/own.md run, the one of YAML with the providers beside it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.transforms import yaml
from shards.manifest import read_manifest
from shards.reader import Dataset
from tests.pipelines.transforms.pipes import TOKENIZER

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "own.md"
PROVIDERS = ROOT / "docs" / "beam-providers.yaml"


@pytest.mark.slow
def test_the_example_of_the_page_makes_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (source,) = (block for block in blocks if "with beam.Pipeline(RUNNER)" in block)
    source = source.replace("sentencepiece:pipelines/sample/sample.model", TOKENIZER)
    monkeypatch.chdir(tmp_path)
    exec(compile(source, str(PAGE), "exec"), {"__name__": "__main__"})
    dataset = Dataset.open(tmp_path / "build" / "signed")
    account = dataset.manifest.generations[0].accounting["wudao"]
    assert account["read"] == 531
    assert account["dropped"]["language"] == 6
    first = dataset.vocabulary.decode(dataset.documents()[0])
    assert "— WuDao, " in first


@pytest.mark.slow
def test_the_pipeline_of_the_page_makes_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGE.read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    text = text.replace("sentencepiece:pipelines/sample/sample.model", TOKENIZER)
    (tmp_path / "short.yaml").write_text(text)
    shutil.copy(PROVIDERS, tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = ["-m", "apache_beam.yaml.main", "--yaml_pipeline_file=short.yaml"]
    ended = subprocess.run(
        [sys.executable, *command, "--runner=FnApiRunner"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    account = read_manifest(tmp_path / "build" / "short").generations[0].accounting["wudao"]
    assert f"{account['read']} read = {account['kept']} kept" in page
    assert account["dropped"]["too-short"] == 6
    assert account["quarantined"] == {"missing-field": 1, "wrong-type": 1}


def test_providers_name_all_functions() -> None:
    named = {*re.findall(r"pipelines\.transforms\.yaml\.(\w+)", PROVIDERS.read_text("utf-8"))}
    public = {name for name, value in vars(yaml).items() if name.islower() and callable(value)}
    assert named == public
