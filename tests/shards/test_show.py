from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from shards.__main__ import main
from shards.manifest import read_manifest
from shards.reader import Dataset
from shards.summary import html_table
from tests.shards.datasets import put_dataset


def test_names_do_nothing_in_a_notebook(pristine: Path) -> None:
    made = read_manifest(pristine)
    hostile = "<script>alert(1)</script>&\u202e\n"
    tokenizer = replace(made.tokenizer, name=hostile)
    html = Dataset(pristine, replace(made, corpus=hostile, tokenizer=tokenizer))._repr_html_()
    assert "<script>" not in html
    assert "\u202e" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;") == 2
    assert html_table([["<b>", 1]]) == "<table><tr><th>&lt;b&gt;</th><th>1</th></tr></table>"


def test_languages_of_as_many_documents_come_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    languages = pa.array(["fr", "de", "en", "en"])
    shard = {"documents": [[1, 0]] * 4, "language": languages}
    put_dataset(tmp_path, {"g0001-ff/web/00000": shard}, pieces=[b"eos", b"a"], special={"eos": 0})
    assert main(["stats", str(tmp_path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown if " documents (" in line] == ["en", "de", "fr"]
