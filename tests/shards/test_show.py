from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from shards.manifest import SourceEntry, read_manifest, write_manifest
from shards.reader import Dataset
from shards.show import statistics
from shards.summary import html_table
from tests.shards.conftest import EOS, GENERATION
from tests.shards.datasets import put_shard, with_sources


def test_a_notebook_shows_sources_and_splits(pristine: Path) -> None:
    html = Dataset.open(pristine)._repr_html_()
    assert html.startswith(
        f"<p>{pristine}: wudao, manifest 1, generations: 1, bytes, 258 pieces</p>"
    )
    assert "<tr><td>wudao</td><td>6</td><td>47</td><td>4</td><td>" in html
    assert "<tr><td>wudao validation</td><td>1</td><td>9</td><td>1</td><td>" in html


def test_statistics(dataset: Path) -> None:
    lengths = [1, 1, 2, 2, 3, 3, 4, 4, 5, 75]
    languages = pa.array(["en"] * 4 + ["zh"] * 6).dictionary_encode()
    texts = [[*np.full(length - 1, 65), EOS] for length in lengths]
    shard = put_shard(
        dataset,
        f"{GENERATION}/pile/00000",
        texts,
        language=languages,
        bytes=pa.array([20] * 10, pa.int64()),
    )
    pile = SourceEntry(shards=(shard,), validation=())
    write_manifest(dataset, with_sources(read_manifest(dataset), pile=pile))
    lines = list(statistics(Dataset.open(dataset)))
    assert lines[:5] == [
        "pile train: 10 documents, 100 tokens",
        "  tokens a document: mean 10.0, median 3, 90th percentile 5",
        "  bytes a token: 2.00",
        "  zh                    6 documents (60.0%)",
        "  en                    4 documents (40.0%)",
    ]
    assert lines[-3] == f"accounting of {GENERATION}"
    assert [line.split() for line in lines[-2:]] == [
        ["wudao.dropped.short", "2"],
        ["wudao.read", "1,234"],
    ]


def test_statistics_of_columns_that_a_corpus_lacks(dataset: Path) -> None:
    shard = put_shard(dataset, f"{GENERATION}/pile/00000", [[65, EOS]])
    pile = SourceEntry(shards=(shard,), validation=())
    write_manifest(dataset, with_sources(read_manifest(dataset), pile=pile))
    lines = list(statistics(Dataset.open(dataset)))
    assert lines[:2] == [
        "pile train: 1 documents, 2 tokens",
        "  tokens a document: mean 2.0, median 2, 90th percentile 2",
    ]
    assert lines[2].startswith("wudao train")


def test_names_do_nothing_in_a_notebook(pristine: Path) -> None:
    made = read_manifest(pristine)
    hostile = "<script>alert(1)</script>&\u202e\n"
    tokenizer = replace(made.tokenizer, name=hostile)
    html = Dataset(pristine, replace(made, corpus=hostile, tokenizer=tokenizer))._repr_html_()
    assert "<script>" not in html
    assert "\u202e" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;") == 2
    assert html_table([["<b>", 1]]) == "<table><tr><th>&lt;b&gt;</th><th>1</th></tr></table>"
