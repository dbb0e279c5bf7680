"""Makes, with pipelines, a dataset of two generations that has every kind of file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.job.command import main as run_corpus
from pipelines.wudao import CORPUS
from shards.__main__ import main as shards
from tests.pipelines.runs import MODULE, page, write_wudao

FLAGS = (
    *("--tokenizer", str(CORPUS.sample_tokenizer), "--languages", "all"),
    *("--language-threshold", "0", "--validation", "0.05", "--shards", "2"),
    *("--dedup", "minhash", "--keep-dropped", "--max-reject-rate", "1"),
)
"""The flags of every run on the dataset."""


@dataclass(frozen=True)
class Grown:
    """A dataset, and the folder of its input, which has one file that the dataset has not read."""

    dataset: Path
    input: Path


def make_grown(folder: Path) -> Grown:
    """Make the dataset and its input in an empty folder."""
    grown = Grown(folder / "dataset", folder / "in")
    command = ["--input", str(grown.input), "--output", str(grown.dataset), *FLAGS]
    rng = np.random.default_rng(1)
    texts = ["".join(map(chr, rng.integers(0x4E00, 0x9F00, 300))) for _ in range(44)]
    pages = [page(number, text) for number, text in enumerate(texts)]
    near = {**pages[3], "content": pages[3]["content"].replace("急不得", "急也没用", 1)}
    write_wudao(grown.input / "part-0.json", [*pages[40:42], {"id": 9}])
    assert run_corpus(MODULE, command) == 0
    write_wudao(grown.input / "part-1.json", [*pages[:20], {"id": 7}, pages[1], near])
    assert run_corpus(MODULE, [*command, "--overwrite"]) == 0  # so that the folder has two lineages
    write_wudao(grown.input / "part-2.json", [*pages[20:40], {"id": 8}, pages[2]])
    assert run_corpus(MODULE, [*command, "--append"]) == 0
    for number in (5, 25):
        key = pages[number]["uniqueKey"]
        assert shards(["remove", str(grown.dataset), "--id", key, "--reason", "asked"]) == 0
    write_wudao(grown.input / "part-3.json", [*pages[42:], near, pages[30]])
    return grown
