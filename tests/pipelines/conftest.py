from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines import libraries
from pipelines.job.build import build
from tests.pipelines.own_code import forget
from tests.pipelines.runs import cut_sample, many_splits


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sample, cut into 36 files."""
    return cut_sample(tmp_path_factory.mktemp("sample"), files=36)


@pytest.fixture(scope="session")
def reference(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset that every disturbed run must equal, built in one uninterrupted process."""
    output = tmp_path_factory.mktemp("reference") / "dataset"
    build("pipelines.wudao", many_splits(output, sample, keep_segments=True))
    return output


@pytest.fixture(autouse=True)
def unwarned() -> Iterator[None]:
    """Let each test see again the log messages that a process prints only once."""
    libraries._warn.cache_clear()
    yield
    libraries._warn.cache_clear()


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules can be imported."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    forget()
    yield folder
    forget()
