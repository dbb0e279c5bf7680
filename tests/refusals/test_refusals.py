"""Each row of the table, in a folder of its own."""

from collections import Counter
from pathlib import Path

import pytest

from tests.nightly import a_few
from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.runner import check
from tests.refusals.said import said
from tests.refusals.table import rows

ROWS = rows()


@pytest.mark.parametrize(
    "row", a_few(ROWS, of_each=16, others=pytest.mark.slow), ids=[row.name for row in ROWS]
)
def test_the_row_is_refused_as_it_says(row: Refusal, tmp_path: Path) -> None:
    if row.needs:
        pytest.importorskip(row.needs)
    check(row, tmp_path / "here")


def test_each_row_has_a_name_of_its_own() -> None:
    assert not [name for name, times in Counter(row.name for row in ROWS).items() if times > 1]


def test_each_row_has_a_text_and_no_other_has() -> None:
    names = {row.name for row in ROWS if not row.says and not isinstance(row, Accepted)}
    assert names == {*said()}
