"""Rows of Beam with a schema, and the batches that are made of them."""

from typing import Any, NamedTuple

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


PAGES = [Page("one", "a", 1), Page("two", None, 2, 0.5), Page("three", "b", 3)]


def batches_of(rows: list[Any], kind: Any, **arguments: Any) -> list[dict[str, Any]]:
    with running() as (pipeline, seen):
        made = pipeline | beam.Create(rows).with_output_types(kind) | FromRows(**arguments)
        seen.watch("made", made)
    return seen.rows("made")


def test_identity_is_a_hash_of_the_id_or_of_the_whole_row() -> None:
    changed = [page._replace(text=f"{page.text}!") for page in PAGES]
    by_row = [batches_of(pages, Page) for pages in (PAGES, PAGES[::-1], changed)]
    assert by_row[0] == by_row[1]
    assert {row["order"] for row in by_row[0]}.isdisjoint({row["order"] for row in by_row[2]})
    by_id = [batches_of(pages, Page, id="year") for pages in (PAGES, changed)]
    assert [row["order"] for row in by_id[0]] == [row["order"] for row in by_id[1]]
    other = batches_of(PAGES, Page, seed=1)
    assert {row["order"] for row in other}.isdisjoint({row["order"] for row in by_row[0]})


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
