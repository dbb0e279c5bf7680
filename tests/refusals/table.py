"""The rows of the table of refusals, module by module."""

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path

from tests.refusals.refusal import Refusal

WINGS = ("pipelines_", "shards_", "trainer_")


def modules() -> Sequence[str]:
    """Return the names of the modules of this folder that have rows."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(module.name for module in found if module.name.startswith(WINGS))


def rows_of(module: str) -> Sequence[Refusal]:
    """Return a module's ROWS."""
    rows: Sequence[Refusal] = importlib.import_module(f"tests.refusals.{module}").ROWS
    return rows


def rows() -> Sequence[Refusal]:
    """Return the rows of all modules."""
    return [row for name in modules() for row in rows_of(name)]
