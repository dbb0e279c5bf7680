"""The pipeline of docs/own.md runs, and Beam YAML provides every transform."""

import re
from pathlib import Path

import pytest

from pipelines import yaml_transforms
from shards.reader import Dataset
from tests.pipelines.write.pipes import TOKENIZER

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "own.md"
PROVIDERS = ROOT / "docs" / "examples" / "beam-providers.yaml"


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


def test_providers_name_all_functions() -> None:
    named = {*re.findall(r"pipelines\.yaml_transforms\.(\w+)", PROVIDERS.read_text("utf-8"))}
    public = {
        name for name, value in vars(yaml_transforms).items() if name.islower() and callable(value)
    }
    assert named == public
