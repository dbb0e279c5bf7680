"""Generations over time: true to report.json, for two of them and for hundreds."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipelines.report.growth import MOST_CELLS, MOST_ROWS, NEWEST, Growth, growth

START = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


def generation(number: int, hours: float, **changes: Any) -> dict[str, Any]:
    """What report.json says of a generation that was finished some hours after the start."""
    return {
        "name": f"g{number:04}-0123abcd",
        "number": number,
        "inputs": 2,
        "input_bytes": 1_000_000,
        "documents": 100 * number,
        "tokens": 50_000 * number,
        "read": 120 * number,
        "dropped": 20 * number,
        "known": 5 * number if number > 1 else 0,
        "finished": (START + timedelta(hours=hours)).isoformat(timespec="seconds"),
        "seconds": 3.5,
        **changes,
    }


def lag(median: float, worst: float) -> dict[str, float]:
    return {"median": median, "worst": worst}


def grown(rows: Sequence[dict[str, Any]]) -> Growth:
    found = growth({"generations": [*rows]})
    assert found is not None
    return found


def test_a_few_generations_stand_at_their_times_with_their_figures() -> None:
    shown = grown([generation(1, 0), generation(2, 6), generation(3, 24)])
    assert shown.period == "from 2026-11-22 10:00:00 to 2026-11-23 10:00:00 UTC"
    documents = shown.bars(kept="documents")
    assert documents.bars == {"kept": pytest.approx({0: 100 / 3, 5: 200 / 3, 19: 100})}
    assert documents.top == 300
    assert documents.ticks == {0: "2026-11-22 10:00", 20: "2026-11-23 10:00"}
    tokens = shown.bars(kept="tokens", in_all=True)
    steps = [tokens.bars["kept"][cell] for cell in range(20)]
    assert steps == pytest.approx([100 / 6] * 5 + [50] * 14 + [100])
    assert tokens.top == shown.total("tokens")
    assert list(shown.bars(dropped="known").bars["dropped"]) == [5, 19]


def test_hundreds_of_generations_share_cells_and_lose_nothing() -> None:
    rows = [generation(number, number / 60, documents=10, known=0) for number in range(1, 641)]
    shown = grown(rows)
    drawn = shown.bars(kept="documents").bars["kept"]
    assert list(drawn) == list(range(MOST_CELLS))
    assert sum(drawn.values()) / 100 == pytest.approx(6400 / 80, rel=0.02)
    assert [row["number"] for row in shown.newest] == [*range(640, 640 - NEWEST, -1)]
    assert len(shown.newest) + len(shown.older) == MOST_ROWS


def test_the_lag_of_a_stream_is_the_longest_of_a_cell() -> None:
    lags = [lag(2, 60), lag(3, 50), lag(4, 30)]
    times = [1, 1.01, 2]
    rows = [
        generation(n, hours, lag=each)
        for n, hours, each in zip((2, 3, 4), times, lags, strict=True)
    ]
    drawn = grown([generation(1, 0), *rows]).bars(rest="worst", kept="median")
    assert drawn.bars == {
        "rest": pytest.approx({10: 100, 19: 50}),
        "kept": pytest.approx({10: 100 / 20, 19: 100 / 15}),
    }
    still = grown([generation(number, number, lag=lag(0, 0)) for number in (1, 2)])
    assert still.bars(rest="worst").bars == {"rest": {}}
