from pathlib import Path

import pytest

from tests.shards.exports.worlds import build


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that no test changes."""
    return build(tmp_path_factory.mktemp("world") / "dataset", prompts=True, removed=True)


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without prompts, in int32, with nothing removed."""
    directory = tmp_path_factory.mktemp("plain") / "dataset"
    return build(directory, dtype="<i4", prompts=False, removed=False)
