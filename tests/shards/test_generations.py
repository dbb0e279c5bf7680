"""A dataset that is appended to, compacted, overwritten and pruned while others read it."""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from shards.__main__ import main
from shards.manifest import read_manifest
from shards.reader import Dataset
from tests.shards.generations import grow


def read_on(directory: Path, until: Connection, found: Connection) -> None:
    """Open the dataset again and again and read all of it; keep some open, and read them again."""
    kept: list[tuple[Dataset, int]] = []
    numbers = set()
    try:
        while not until.poll():
            dataset = Dataset.open(directory)
            tokens = total(dataset)
            numbers.add(dataset.manifest.number)
            kept = [*kept[-3:], (dataset, tokens)]
            assert all(total(dataset) == tokens for dataset, tokens in kept)
        found.send(sorted(numbers))
    except BaseException as error:
        found.send(repr(error))
        raise


def total(dataset: Dataset) -> int:
    """Return the sum of all tokens, after a look at every document."""
    shards = [dataset.documents(split=split).shards() for split in ("train", "validation")]
    return sum(int(shard.tokens.sum()) for part in shards for shard in part)


def overwrite(directory: Path) -> None:
    """Replace the dataset by one of a single generation, as --overwrite does."""
    number = read_manifest(directory).number
    grow(directory, documents=6, overwrite=True)
    assert read_manifest(directory).number == number + 1


CHANGES: dict[str, Callable[[Path], object]] = {
    "append": lambda directory: grow(directory, documents=6),
    "compact": lambda directory: main(["compact", str(directory)]),
    "overwrite": overwrite,
    "prune": lambda directory: main(["prune", str(directory)]),
}


@pytest.mark.slow
def test_a_reader_never_misses_a_file_during_50_changes(tmp_path: Path) -> None:
    directory = tmp_path / "dataset"
    grow(directory, documents=6)
    context = multiprocessing.get_context("fork")
    readers = []
    for _ in range(2):
        until, stop = context.Pipe(duplex=False)
        found, answer = context.Pipe(duplex=False)
        process = context.Process(target=read_on, args=(directory, until, answer))
        process.start()
        readers.append((process, stop, found))
    rng = np.random.default_rng(4)
    for change in rng.choice(["append", "append", "compact", "overwrite", "prune", "prune"], 50):
        CHANGES[change](directory)
    for process, stop, found in readers:
        stop.send(None)
        numbers = found.recv()
        process.join()
        assert isinstance(numbers, list), numbers
        assert len(numbers) > 5
    assert main(["prune", str(directory), "--days", "0"]) == 0
    folders = {path.name for path in directory.iterdir() if path.is_dir()}
    assert folders == {item.name for item in read_manifest(directory).generations}


def test_what_a_manifest_named_lately_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "dataset"
    grow(directory)
    first, second = (directory / each.name for each in grow(directory).generations)
    for folder in (first, second):
        os.utime(folder, (0, 0))  # they were made long ago, and are replaced now
    assert main(["compact", str(directory)]) == 0
    capsys.readouterr()
    assert main(["prune", str(directory)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f"{first.name}: stays, a manifest named it within 30 days (--days)")
    assert lines[-1].split() == ["0", "bytes", "freed"]
    old = time.time() - 30 * 86_400
    os.utime(first, (old, old))
    assert main(["prune", str(directory)]) == 0
    assert (first.exists(), second.exists()) == (False, True)


def test_what_is_mapped_can_be_read_without_its_file(tmp_path: Path) -> None:
    directory = tmp_path / "dataset"
    grow(directory)
    dataset = Dataset.open(directory)
    shard = dataset.shard(dataset.manifest.shards()[0])
    before = shard.tokens.copy()
    grow(directory)
    main(["compact", str(directory)])
    main(["prune", str(directory), "--days", "0"])
    assert not (directory / dataset.manifest.generations[0].name).exists()
    assert np.array_equal(shard.tokens, before)
    assert np.array_equal(shard[len(shard) - 1], before[shard.offsets[-1] :])
