from pathlib import Path

import pytest

from pipelines.run.build import build
from tests.pipelines.runs import many_splits


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset that every disturbed run must come to, made in one process in peace."""
    output = tmp_path_factory.mktemp("reference") / "dataset"
    build("pipelines.wudao", many_splits(output, keep_segments=True))
    return output
