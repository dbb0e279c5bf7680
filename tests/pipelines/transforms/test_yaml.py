"""The pipeline of docs/transforms.md that is no Python runs, with the providers beside it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.transforms import yaml
from shards.manifest import read_manifest
from tests.pipelines.transforms.pipes import TOKENIZER

ROOT = Path(__file__).parents[3]
PROVIDERS = ROOT / "docs" / "beam-providers.yaml"


@pytest.mark.slow
def test_the_pipeline_of_the_page_makes_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "transforms.md").read_text("utf-8")
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
