import importlib
import sys

import pytest

import pipelines.map.preloaded
from pipelines import compiled


def test_a_broken_numba_is_left_to_the_workers(
    broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    importlib.reload(pipelines.map.preloaded)
    assert "numba" not in sys.modules
    assert not compiled.usable()
    assert caplog.messages == [broken_numba]


@pytest.mark.skipif(not compiled.available(), reason="numba is missing or switched off")
def test_numba_is_imported() -> None:
    assert "numba" in sys.modules
