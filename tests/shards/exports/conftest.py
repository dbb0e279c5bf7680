import pytest

from tests.shards.exports.worlds import World, build


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A dataset that no test changes."""
    return build(tmp_path_factory.mktemp("world") / "dataset")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same without prompts, in int32, with nothing removed."""
    directory = tmp_path_factory.mktemp("plain") / "dataset"
    return build(directory, dtype="<i4", prompts=False, removed=False)
