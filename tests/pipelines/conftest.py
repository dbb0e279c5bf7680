from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines import libraries
from pipelines.job.build import build
from tests.pipelines.own_code import forget
from tests.pipelines.runs import cut_sample, many_splits


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, cut into 36 files."""
    return cut_sample(tmp_path_factory.mktemp("sample"), files=36)


@pytest.fixture(scope="session")
def reference(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset that every disturbed run must come to, made in one process in peace."""
    output = tmp_path_factory.mktemp("reference") / "dataset"
    build("pipelines.wudao", many_splits(output, sample, keep_segments=True))
    return output


@pytest.fixture(autouse=True)
def unwarned() -> Iterator[None]:
    """Log messages of once per process again in each test."""
    libraries._warn.cache_clear()
    yield
    libraries._warn.cache_clear()


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that can be imported."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    forget()
    yield folder
    forget()
