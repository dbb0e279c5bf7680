from pathlib import Path

import pytest

from tests.shards.exports.worlds import build


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that no test changes."""
    return build(tmp_path_factory.mktemp("world") / "dataset", prompts=True, removed=True)


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset like `world` but without prompts, with int32 tokens and no removals."""
    directory = tmp_path_factory.mktemp("plain") / "dataset"
    return build(directory, dtype="<i4", prompts=False, removed=False)
