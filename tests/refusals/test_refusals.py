"""Every row of the table is refused or accepted as expected, each in its own folder."""

from collections import Counter
from pathlib import Path

import pytest

from tests.nightly import a_few
from tests.refusals.messages import expected_messages
from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.runner import check
from tests.refusals.table import rows

ROWS = rows()


@pytest.mark.parametrize(
    "row", a_few(ROWS, of_each=16, others=pytest.mark.slow), ids=[row.name for row in ROWS]
)
def test_a_row_gives_its_message(row: Refusal, tmp_path: Path) -> None:
    if row.requires:
        pytest.importorskip(row.requires)
    check(row, tmp_path / "here")


def test_no_two_rows_share_a_name() -> None:
    assert not [name for name, times in Counter(row.name for row in ROWS).items() if times > 1]


def test_each_message_belongs_to_a_row_and_each_row_has_one() -> None:
    names = {row.name for row in ROWS if not row.message and not isinstance(row, Accepted)}
    assert names == {*expected_messages()}
