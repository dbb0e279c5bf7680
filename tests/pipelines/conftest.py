from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipelines.inputs.files import InputFile, match_inputs
from pipelines.run.build import build
from tests.pipelines.mapped import CONTENT
from tests.pipelines.runs import many_splits


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset that every disturbed run must come to, made in one process in peace."""
    output = tmp_path_factory.mktemp("reference") / "dataset"
    build("pipelines.wudao", many_splits(output, keep_segments=True))
    return output


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The input file of tests.pipelines.mapped."""
    path = tmp_path / "in" / "a.json"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def remote() -> Iterator[InputFile]:
    """The same file behind a URL: it has an etag, and no time."""
    system = MemoryFileSystem()
    system.pipe("/a.json", CONTENT)
    (found,) = match_inputs(["memory://a.json"], pattern="*", default_name="s")
    assert found.etag
    yield found
    system.store.clear()
