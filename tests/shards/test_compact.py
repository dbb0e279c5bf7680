import shutil
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.manifest import read_manifest
from shards.reader import Dataset
from shards.verify import verify
from tests.shards.generations import documents_of, grow, rows_of, signatures_of


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five generations; no test changes them."""
    directory = tmp_path_factory.mktemp("grown") / "dataset"
    for shards in (2, 1, 2, 4, 1):
        grow(directory, shards=shards)
    return directory


@pytest.fixture
def dataset(grown: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(grown, tmp_path / "dataset"))


def test_all_documents_and_rows_are_there_once(grown: Path, dataset: Path) -> None:
    assert main(["compact", str(dataset)]) == 0
    manifest = read_manifest(dataset)
    (generation,) = manifest.generations
    assert (manifest.number, generation.number) == (6, 6)
    assert generation.name == f"g0006-{generation.fingerprint[:8]}"
    assert list(verify(Dataset.open(dataset))) == []
    assert documents_of(dataset) == documents_of(grown)
    for folder in ("audit", "rejects"):
        assert rows_of(dataset, folder) == rows_of(grown, folder)
    assert signatures_of(dataset) == signatures_of(grown)
    assert generation.accounting["news"] == {"read": 105, "kept": 100, "dropped": {"short": 15}}
    assert len(generation.inputs) == 10
