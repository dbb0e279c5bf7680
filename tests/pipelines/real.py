"""Real files, if they lie beside the repository."""

import itertools
from pathlib import Path

import pytest

from pipelines.filters.listing import read_whole
from pipelines.readers.reading import Reading
from pipelines.readers.record import Record

DATA = Path(__file__).parents[3] / "shared" / "data"


def real(name: str) -> Path:
    """The path of a real file or folder; skips the test if it is missing."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no real data at {path}")
    return path


def real_records(name: str, reading: Reading, *, most: int | None = None) -> list[Record]:
    """The records of a real file or folder, all or the first ones."""
    pairs = itertools.islice(read_whole([str(real(name))], reading), most)
    items = [item for _, item in pairs]
    records = [item for item in items if isinstance(item, Record)]
    assert len(records) == len(items) > 0
    return records
