"""The example of docs/transforms.md runs."""

import re
from pathlib import Path

import pytest

from shards.reader import Dataset
from tests.pipelines.transforms.pipes import TOKENIZER

PAGE = Path(__file__).parents[3] / "docs" / "transforms.md"


@pytest.mark.slow
def test_the_example_of_the_page_makes_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    source = source.replace("sentencepiece:pipelines/sample/sample.model", TOKENIZER)
    monkeypatch.chdir(tmp_path)
    exec(compile(source, str(PAGE), "exec"), {"__name__": "__main__"})
    dataset = Dataset.open(tmp_path / "build" / "signed")
    account = dataset.manifest.generations[0].accounting["wudao"]
    assert account["read"] == 531
    assert account["dropped"]["language"] == 6
    first = dataset.vocabulary.decode(dataset.documents()[0])
    assert "— WuDao, " in first
