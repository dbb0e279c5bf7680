from pathlib import Path

import numpy as np
import pytest
from datatrove.pipeline.tokens.tokenizer import TokenizedFile
from datatrove.utils.dataset import DatatroveFolderDataset

from shards.exports.formats import _humanized
from shards.manifest import TRAIN, VALIDATION
from tests.shards.exports.worlds import World, export, tree


@pytest.mark.parametrize("size", [2, 4])
def test_the_files_are_those_that_datatrove_writes(
    world: World, plain: World, tmp_path: Path, size: int
) -> None:
    chosen = world if size == 2 else plain
    out = tmp_path / "out"
    assert export(chosen, "datatrove", out) == 0
    files = {name: data for name, data in tree(out).items() if name != "export.json"}
    wanted: dict[str, bytes] = {}
    for split in (TRAIN, VALIDATION):
        for number, documents in enumerate(chosen.shards(split)):
            folder, name = tmp_path / "theirs", f"{split}/{number:06d}_{documents[0].source}.ds"
            written = TokenizedFile(
                str(folder),
                name,
                save_loss_metadata=any(document.prompt for document in documents),
                save_final_metadata=True,
                tokenizer_name_or_path="words",
                token_size=size,
            )
            for document in documents:
                loss = np.arange(len(document.tokens)) >= document.prompt
                written.write(list(document.tokens), loss)
            written.close()
            wanted |= {f"{path}": data for path, data in tree(folder).items()}
    assert files == wanted


@pytest.mark.parametrize("size", [2, 4])
def test_datatrove_reads_it(world: World, plain: World, tmp_path: Path, size: int) -> None:
    chosen = world if size == 2 else plain
    out = tmp_path / "out"
    assert export(chosen, "datatrove", out) == 0
    read = DatatroveFolderDataset(
        str(out / "train"), 6, recursive=False, token_size=size, return_positions=True
    )
    windows, places = [], []
    for documents in chosen.shards():
        stream = [token for document in documents for token in document.tokens]
        place = [i for document in documents for i in range(len(document.tokens))]
        for start in range(0, len(stream) - 6, 7):
            windows.append(stream[start : start + 7])
            own = place[start : start + 7]  # counted from the window's start in its first document
            begun = next((i for i, value in enumerate(own) if value == 0), 7)
            places.append([*range(begun), *own[begun:]])
    assert len(read) == len(windows) > 50
    assert [item["input_ids"].tolist() for item in read] == windows
    assert [item["positions"].tolist() for item in read] == places


@pytest.mark.parametrize("count", [1, 12, 999, 1000, 9994, 9996, 99_951, 999_499, 999_500, 10**9])
def test_counts_are_said_as_datatrove_says_them(count: int) -> None:
    import humanize  # noqa: PLC0415  datatrove's

    assert _humanized(count) == humanize.metric(count, unit="T")
