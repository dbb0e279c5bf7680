from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shards.errors import UserError
from shards.manifest import SourceEntry, read_manifest, write_manifest
from shards.reader import Dataset
from shards.show import document, overview, statistics
from tests.shards.conftest import EOS, GENERATION
from tests.shards.datasets import put_shard, with_sources


def test_overview(pristine: Path) -> None:
    dataset = Dataset.open(pristine)
    lines = list(overview(dataset))
    assert lines[:5] == [
        f"{pristine}: wudao, manifest 1",
        f"identity   {dataset.manifest.identity}",
        "tokenizer  bytes (bytes), 258 pieces, padded to 384, uint16",
        "special    eos=256 mask=257",
        "options    rules=['short'] seed=1",
    ]
    assert lines[-4].split() == ["source", "documents", "tokens", "shards", "MB"]
    assert [line.split()[:-1] for line in lines[-3:]] == [
        ["pile", "2", "8", "1"],
        ["wudao", "6", "47", "4"],
        ["wudao", "validation", "1", "9", "1"],
    ]


def test_a_notebook_shows_sources_and_splits(pristine: Path) -> None:
    html = Dataset.open(pristine)._repr_html_()
    assert html.startswith(
        f"<p>{pristine}: wudao, manifest 1, generations: 1, bytes, 258 pieces</p>"
    )
    assert "<tr><td>wudao</td><td>6</td><td>47</td><td>4</td><td>" in html
    assert "<tr><td>wudao validation</td><td>1</td><td>9</td><td>1</td><td>" in html


def test_document(pristine: Path) -> None:
    lines = list(document(Dataset.open(pristine), 4, source="wudao", split="train"))
    assert lines[:5] == [
        "def.⟨<|endoftext|>⟩",
        "",
        "document  4 of 6 (train)",
        f"shard     {GENERATION}/wudao/00002, row 2",
        "tokens    5",
    ]
    assert lines[5] == "ids       100 101 102 46 256"


def test_no_such_document(pristine: Path) -> None:
    with pytest.raises(UserError, match=r"no validation document 1: .* has 1, counted from 0"):
        list(document(Dataset.open(pristine), 1, source=None, split="validation"))


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
