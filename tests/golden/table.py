"""All rows, by name."""

from collections import Counter
from collections.abc import Mapping

from tests.golden import rows_growth, rows_recipes, rows_seen, rows_training
from tests.golden.row import Row

_ALL = [*rows_recipes.ROWS, *rows_growth.ROWS, *rows_training.ROWS, *rows_seen.ROWS]

ROWS: Mapping[str, Row] = {row.name: row for row in _ALL}

_TWICE = [name for name, times in Counter(row.name for row in _ALL).items() if times > 1]
assert not _TWICE, f"two rows are named {_TWICE}"
