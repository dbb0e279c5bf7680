"""All rows, by name."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from tests.golden.row import Row

_MODULES = ("rows_recipes", "rows_growth", "rows_training", "rows_seen")


def _joined() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for module in _MODULES:
        if not find_spec(f"tests.golden.{module}"):
            continue
        for row in import_module(f"tests.golden.{module}").ROWS:
            assert row.name not in rows, f"two rows are named {row.name}"
            rows[row.name] = row
    return rows


ROWS: Mapping[str, Row] = _joined()
