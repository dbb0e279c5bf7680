"""Commands give their pinned results; `make golden UPDATE=1` pins new ones."""

import os
from pathlib import Path

import pytest

from tests.golden.expected import figures, update
from tests.golden.outcome import differences
from tests.golden.runner import outcome
from tests.golden.table import ROWS

_SHOWN = 40


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "golden"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if ROWS[name].fast else pytest.mark.slow) for name in ROWS]
)
def test_a_row_gives_its_pinned_results(name: str, home: Path) -> None:
    for module in ROWS[name].requires:
        pytest.importorskip(module)
    found = outcome(name, ROWS, home)
    if os.environ.get("UPDATE"):
        update(name, found)
    lines = list(differences(figures(name), found))
    assert not lines, "\n".join([*lines[:_SHOWN], f"in all {len(lines)} lines"])
