from datetime import UTC, datetime

import pytest

from pipelines.report.time_axis import FEWEST_CELLS, MOST_CELLS, TimeAxis

HOUR, DAY = 3600, 86_400
START = datetime(2026, 11, 22, 10, 7, 31, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0, ["10:07:31", "10:07:32"]),
        (5, ["10:07:32", "10:07:34", "10:07:36"]),
        (14 * 60, ["10:10", "10:15", "10:20"]),
        (20 * HOUR, ["12:00", "11-23"]),
        (30 * HOUR, ["12:00", "11-23", "12:00"]),
        (3 * DAY, ["2026-11-23", "2026-11-24", "2026-11-25"]),
        (100 * DAY, ["2026-12-03", "2027-01-02", "2027-02-01"]),
        (30 * 365 * DAY, ["2029-12-17", "2039-12-15", "2049-12-12"]),
    ],
)
def test_ticks_are_round_times(seconds: float, labels: list[str]) -> None:
    axis = TimeAxis.of([START + seconds, START])
    assert [label for _, label in axis.ticks()] == labels
    assert all(0 <= part <= 1 for part, _ in axis.ticks())


@pytest.mark.parametrize("exponent", range(1, 20))
def test_any_span_has_ticks_and_not_too_many(exponent: int) -> None:
    assert 1 <= len(TimeAxis.of([START, START + 3**exponent]).ticks()) <= 3


def test_cells_are_of_equal_length_and_hold_both_ends() -> None:
    axis = TimeAxis.of([START, START + 100, START + 200])
    assert axis.cells == FEWEST_CELLS
    assert [axis.cell(START + second) for second in (0, 9.9, 10, 105, 200)] == [0, 0, 1, 10, 19]
    assert TimeAxis.of([START + number for number in range(500)]).cells == MOST_CELLS
    assert TimeAxis.of([START]).cell(START) == 0
