"""Rows of Beam with a schema, and the batches that are made of them."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from pipelines.engine import beam
from pipelines.segments.rows import READ
from pipelines.transforms import Clean, FromRows, ReadCorpus, ToRows
from pipelines.transforms.rows import IDENTITY, _column
from shards.errors import UserError
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


def test_documents_keep_identity_and_columns_through_rows() -> None:
    with running() as (pipeline, seen):
        clean = pipeline | ReadCorpus("wudao")
        clean = clean.kept | Clean()
        rows = clean.kept | ToRows("id", "category", repaired=bool)
        seen.watch("before", clean.kept)
        seen.watch("rows", rows)
        seen.watch("after", rows | beam.Reshuffle() | FromRows())
    assert seen.by_name["rows"][0].id
    before, after = seen.rows("before"), seen.rows("after")
    assert len(before) > 500
    assert before == after


def test_rows_of_ones_own_become_documents() -> None:
    rows = batches_of(PAGES, Page, source="web", group="url")
    assert {*READ.names, "source", "path", *Page._fields} == {*rows[0]}
    assert [(row["text"], row["group"], row["weight"]) for row in rows] == [
        ("one", "a", None),
        ("three", "b", None),
        ("two", "", 0.5),
    ]
    assert {(row["source"], row["path"], row["ordinal"]) for row in rows} == {("web", "rows", 0)}
    assert len({row["order"] for row in rows}) == 3


def test_identity_is_a_hash_of_the_id_or_of_the_whole_row() -> None:
    changed = [page._replace(text=f"{page.text}!") for page in PAGES]
    by_row = [batches_of(pages, Page) for pages in (PAGES, PAGES[::-1], changed)]
    assert by_row[0] == by_row[1]
    assert {row["order"] for row in by_row[0]}.isdisjoint({row["order"] for row in by_row[2]})
    by_id = [batches_of(pages, Page, id="year") for pages in (PAGES, changed)]
    assert [row["order"] for row in by_id[0]] == [row["order"] for row in by_id[1]]
    other = batches_of(PAGES, Page, seed=1)
    assert {row["order"] for row in other}.isdisjoint({row["order"] for row in by_row[0]})


class Listed(NamedTuple):
    """A row with a field that no column has."""

    text: str
    words: list[str]


class Placed(NamedTuple):
    """A row with a part of an identity."""

    text: str
    position: int


class Ordered(NamedTuple):
    """A row with a name that is taken."""

    text: str
    order: int


class Untitled(NamedTuple):
    """A row without a text."""

    body: str


@pytest.mark.parametrize(
    ("rows", "kind", "arguments", "message"),
    [
        ([("a", 1)], tuple[str, int], {}, r"needs rows with a schema, not elements of Tuple"),
        ([Listed("a", [])], Listed, {}, r"the field 'words' is of .*Leave it out, or make a text"),
        ([Placed("a", 1)], Placed, {}, r"rows have position but not source, path, length"),
        ([Ordered("a", 1)], Ordered, {}, r"a field cannot be called 'order', .*from_order"),
        ([Untitled("a")], Untitled, {}, r"rows have no field 'text'; they have body"),
        (PAGES, Page, {"id": "uri"}, r"rows have no field 'uri'; they have text, url, year"),
    ],
)
def test_rows_that_make_no_documents_are_refused(
    rows: list[Any], kind: Any, arguments: dict[str, str], message: str
) -> None:
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    with pytest.raises(UserError, match=message):
        _ = pipeline | beam.Create(rows).with_output_types(kind) | FromRows(**arguments)


def test_a_row_without_a_text_is_refused() -> None:
    with pytest.raises(Exception, match=r"a row's text is null: leave such rows out before"):
        batches_of([Page(None, "a", 1)], Page)  # type: ignore[arg-type]  # what a table may hold


def test_types_that_no_row_has_are_refused() -> None:
    with pytest.raises(UserError, match=r"a column of a row is a str, int, float or bool"):
        ToRows(when=bytes)
    assert [*ToRows("url")._fields][:5] == [*IDENTITY]


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


@pytest.mark.parametrize("source", ["a/b", "..", "", "https://x.org"])
def test_a_source_names_a_folder(source: str) -> None:
    with pytest.raises(UserError, match="cannot be the name of a source"):
        FromRows(source=source)


class Odd(NamedTuple):
    """Rows with columns that steps make."""

    text: str
    score: str = "high"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (Odd("one"), "a row's score is no float"),
        (Page("o\0ne", "a", 1), "a row's text has a NUL character"),
        (Page("\ud800", "a", 1), "a row's text is no"),
    ],
)
def test_values_that_fit_no_column_are_told(row: Any, said: str) -> None:
    with pytest.raises(Exception, match=said):
        batches_of([row], type(row))


def test_a_number_is_not_cut_to_a_whole_one() -> None:
    def column(*years: Any) -> list[Any]:
        made: list[Any] = _column("year", years, pa.int64()).to_pylist()
        return made

    assert column(5, 5.0, None) == [5, 5, None]
    for year in (5.5, np.float64(5.5), float("nan")):
        with pytest.raises(UserError, match=r"a row's year is .*, and its type a whole number"):
            column(4, year)
