"""All rows of the golden table by name."""

from collections import Counter
from collections.abc import Mapping

from tests.golden import rows_datasets, rows_interfaces, rows_processing, rows_training
from tests.golden.row import Row

_ALL = [*rows_processing.ROWS, *rows_datasets.ROWS, *rows_training.ROWS, *rows_interfaces.ROWS]

ROWS: Mapping[str, Row] = {row.name: row for row in _ALL}

_TWICE = [name for name, times in Counter(row.name for row in _ALL).items() if times > 1]
assert not _TWICE, f"two rows are named {_TWICE}"
