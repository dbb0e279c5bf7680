from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from datatrove.pipeline.tokens.tokenizer import TokenizedFile

from shards.manifest import TRAIN, VALIDATION
from tests.shards.datasets import put_dataset, tree
from tests.shards.exports.worlds import Document, export, leaving
from tests.shards.library import EOS


def theirs(
    folder: Path, name: str, documents: Sequence[Document], *, size: int
) -> dict[str, bytes]:
    """Return the files that datatrove writes for a shard, and all files already in the folder."""
    written = TokenizedFile(
        str(folder),
        name,
        save_loss_metadata=any(document.prompt for document in documents),
        save_final_metadata=True,
        tokenizer_name_or_path="bytes",
        token_size=size,
    )
    for document in documents:
        loss = np.arange(len(document.tokens)) >= document.prompt
        written.write(list(document.tokens), loss)
    written.close()
    return tree(folder)


@pytest.mark.parametrize("size", [2, 4])
def test_the_files_are_those_that_datatrove_writes(
    world: Path, plain: Path, tmp_path: Path, size: int
) -> None:
    chosen = world if size == 2 else plain
    out = tmp_path / "out"
    assert export(chosen, "datatrove", out) == 0
    files = {name: data for name, data in tree(out).items() if name != "export.json"}
    wanted: dict[str, bytes] = {}
    for split in (TRAIN, VALIDATION):
        for number, (source, documents) in enumerate(leaving(chosen, split)):
            name = f"{split}/{number:06d}_{source}.ds"
            wanted |= theirs(tmp_path / "theirs", name, documents, size=size)
    assert files == wanted


@pytest.mark.parametrize("count", [999, 1000, 9994, 9996, 99_951, 999_500])
def test_counts_of_tokens_are_said_as_datatrove_says_them(tmp_path: Path, count: int) -> None:
    tokens = (*([5] * (count - 1)), EOS)
    shards = {"g0001-00/a/00000": {"documents": [tokens]}}
    put_dataset(tmp_path / "dataset", shards, pieces=[b"x"] * 257, special={"eos": EOS})
    assert export(tmp_path / "dataset", "datatrove", tmp_path / "out") == 0
    document = Document(tokens, 0)
    wanted = theirs(tmp_path / "theirs", "train/000000_a.ds", [document], size=2)
    found = {name: data for name, data in tree(tmp_path / "out").items() if name in wanted}
    assert found == wanted
