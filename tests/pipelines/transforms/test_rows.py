"""Rows of Beam with a schema, and the batches that are made of them."""

from typing import NamedTuple

import numpy as np

from pipelines.engine import beam
from pipelines.transforms import FromRows
from tests.pipelines.transforms.pipes import running


class Page(NamedTuple):
    """A row of one's own."""

    text: str
    url: str | None
    year: int
    weight: float | None = None
    good: bool = True


def test_identity_does_not_depend_on_how_an_engine_hands_rows_on() -> None:
    rows = [Page("one", "a", 1, 1), Page("two", "b", np.int64(2), 0.5)]  # type: ignore[arg-type]
    with running() as (pipeline, seen):
        made = pipeline | beam.Create(rows, reshuffle=False).with_output_types(Page)
        seen.watch("at once", made | "At once" >> FromRows())
        through = made | beam.Reshuffle()
        seen.watch("through", through | "Through" >> FromRows())
    assert [row["order"] for row in seen.rows("at once")] == [
        row["order"] for row in seen.rows("through")
    ]
