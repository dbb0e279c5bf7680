"""A search without an index, which stops after some time and returns the next row to search."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Hit = TypeVar("Hit")
_ROW = "number of the row"


@dataclass(kw_only=True)
class ScanResult(Generic[Hit]):
    """The hits of a search so far."""

    start: int
    """The row at which the search began, counted over all rows."""
    total: int
    """The number of all rows."""
    at: int
    """The first row that was not searched; equal to the total at the end."""
    hits: list[Hit] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether all rows after the start were searched."""
        return self.at >= self.total


def search(
    blocks: Iterable[tuple[int, Iterable[tuple[int, Hit]]]],
    *,
    start: int,
    total: int,
    seconds: float,
    limit: int | None = None,
) -> ScanResult[Hit]:
    """Return the hits in blocks until there are enough or the time is up.

    Args:
        blocks: The row after each block, and the block's hits with their rows. At least one block
            is searched.
        start: The row at which the first block begins.
        total: The number of all rows.
        seconds: The maximum duration of the search.
        limit: The maximum number of hits; None returns all hits.
    """
    end = time.monotonic() + seconds
    found: ScanResult[Hit] = ScanResult(start=start, at=start, total=total)
    for after, hits in blocks:
        for row, hit in hits:
            found.hits.append(hit)
            if len(found.hits) == limit:
                found.at = row + 1
                return found
        found.at = after
        if time.monotonic() >= end:
            return found
    found.at = total
    return found


def matching(table: pa.Table, wanted: pc.Expression) -> NDArray[np.int64]:
    """Return the rows of a table (int64, sorted) for which an expression is true."""
    table = table.append_column(_ROW, pa.array(np.arange(len(table))))
    return np.sort(table.filter(wanted)[_ROW].to_numpy())
