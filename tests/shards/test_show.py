from dataclasses import replace
from pathlib import Path

from shards.manifest import read_manifest
from shards.reader import Dataset
from shards.summary import html_table


def test_names_do_nothing_in_a_notebook(pristine: Path) -> None:
    made = read_manifest(pristine)
    hostile = "<script>alert(1)</script>&\u202e\n"
    tokenizer = replace(made.tokenizer, name=hostile)
    html = Dataset(pristine, replace(made, corpus=hostile, tokenizer=tokenizer))._repr_html_()
    assert "<script>" not in html
    assert "\u202e" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;") == 2
    assert html_table([["<b>", 1]]) == "<table><tr><th>&lt;b&gt;</th><th>1</th></tr></table>"
