"""Generations over time: true to report.json, for two of them and for hundreds."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from pipelines.report.charts import HEIGHT
from pipelines.report.growth import MOST_ROWS, NEWEST, Growth, Picture, growth, moment
from pipelines.report.labels import WIDTH
from pipelines.report.page import page
from pipelines.report.time_axis import MOST_CELLS
from shards.manifest import Manifest
from tests.pipelines.report.reading import Page

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


def bars(picture: Picture, name: str) -> list[tuple[float, float, float, float]]:
    pattern = r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)V"
    found = re.findall(pattern, picture.chart.bars[name])
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in found]


def heights(picture: Picture, name: str) -> list[float]:
    return [base - tip for _, base, tip, _ in bars(picture, name)]


@pytest.mark.parametrize("rows", [[], [generation(1, 0)]])
def test_one_generation_has_no_history(rows: list[dict[str, Any]]) -> None:
    assert growth({"generations": rows}) is None
    assert growth({}) is None


def test_a_few_generations_stand_at_their_times_with_their_figures() -> None:
    shown = grown([generation(1, 0), generation(2, 6), generation(3, 24)])
    assert shown.period == "from 2026-11-22 10:00:00 to 2026-11-23 10:00:00 UTC"
    documents, tokens, known = shown.pictures
    assert heights(documents, "kept") == pytest.approx([HEIGHT / 3, HEIGHT * 2 / 3, HEIGHT], abs=1)
    left = [left for left, *_ in bars(documents, "kept")]
    assert left == pytest.approx([6, 6 + 308 / 4, 6 + 308 * 19 / 20], abs=0.1)
    assert documents.chart.ticks[0].text == "300"
    assert documents.caption == "600 in all, 300 of them the latest"
    steps = [float(y) for y in re.findall(r"V([\d.]+)", tokens.chart.bars["kept"])]
    base = steps[-1]
    assert [base - y for y in steps[1:-1]] == pytest.approx(
        [HEIGHT / 6, HEIGHT / 2, HEIGHT], abs=0.1
    )
    assert tokens.caption == "grew to 300 thousand, by 150 thousand with the latest"
    assert len(bars(known, "dropped")) == 2
    assert known.caption == "25 documents that an earlier generation has, 3.47 % of those read"


def test_hundreds_of_generations_share_cells_and_lose_nothing() -> None:
    rows = [generation(number, number / 60, documents=10, known=0) for number in range(1, 641)]
    shown = grown(rows)
    documents, _ = shown.pictures
    drawn = bars(documents, "kept")
    assert len(drawn) == MOST_CELLS
    assert sum(heights(documents, "kept")) / HEIGHT == pytest.approx(6400 / 80, rel=0.02)
    assert all(0 <= left < right <= WIDTH for left, *_, right in drawn)
    assert all(before[3] <= after[0] for before, after in pairwise(drawn))
    assert [row["number"] for row in shown.newest] == [*range(640, 640 - NEWEST, -1)]
    assert len(shown.newest) + len(shown.older) == MOST_ROWS
    assert shown.count == 640


def test_the_lag_of_a_stream_is_drawn_by_median_and_worst() -> None:
    rows = [
        generation(1, 0),
        generation(2, 1, lag=lag(2, 60)),
        generation(3, 2, lag=lag(4, 30)),
    ]
    *_, picture = grown(rows).pictures
    assert heights(picture, "rest") == pytest.approx([HEIGHT, HEIGHT / 2], abs=0.1)
    assert heights(picture, "kept") == pytest.approx([HEIGHT / 30, HEIGHT / 15], abs=0.1)
    assert picture.caption == (
        "medians from 2 s to 4 s; the worst, behind them in grey, 1 min in g0002-0123abcd"
    )
    assert grown(rows).has_lag
    assert not grown(rows[:1] * 2).has_lag
    still = grown([generation(number, number, lag=lag(0, 0)) for number in (1, 2)])
    assert bars(still.pictures[-1], "rest") == []


def test_what_is_not_known_or_nothing_is_not_drawn() -> None:
    old = {key: generation(1, 0)[key] for key in ("name", "documents", "tokens", "read", "inputs")}
    shown = grown([old, generation(2, 1)])
    assert (shown.untimed, shown.pictures) == (1, [])
    assert (moment(old), shown.period) == (
        "–",
        "from 2026-11-22 11:00:00 to 2026-11-22 11:00:00 UTC",
    )
    assert grown([old, old]).period == "at unknown times"
    tokens = grown([old, generation(2, 1, known=0), generation(3, 2, known=0)]).pictures[1]
    first = re.match(r"M[\d.]+ ([\d.]+)V([\d.]+)H", tokens.chart.bars["kept"])
    assert first is not None
    assert float(first[1]) - float(first[2]) == pytest.approx(HEIGHT / 6, abs=0.1)
    empty = {"documents": 0, "tokens": 0, "read": 0, "dropped": 0, "known": 0}
    assert grown([generation(1, 0, **empty), generation(2, 0, **empty)]).pictures == []


def shown_on(manifest: Manifest, report: dict[str, Any], rows: list[dict[str, Any]]) -> Page:
    return Page(page(manifest, {**report, "generations": rows}))


@pytest.mark.parametrize("count", [2, 600])
def test_the_page_shows_generations_with_words_for_each_picture(
    manifest: Manifest, report: dict[str, Any], count: int
) -> None:
    rows = [generation(number, number, lag=lag(1, 2)) for number in range(1, count + 1)]
    shown = shown_on(manifest, report, rows)
    assert shown.named("section")[0] == {"id": "generations"}
    pictures = [str(svg["aria-label"]) for svg in shown.named("svg")][:4]
    assert [
        label.partition(" over time, from 2026-11-22 11:00:00 to ")[0] for label in pictures
    ] == [
        "New documents",
        "Tokens of the dataset",
        "Dropped as known",
        "Lag from arrival to commit",
    ]
    assert all(attributes["role"] == "img" for attributes in shown.named("svg"))
    table = [row for row in shown.cells if row[0].endswith("-0123abcd")]
    assert len(table) == min(count, MOST_ROWS)
    assert table[0] == [
        rows[-1]["name"], moment(rows[-1]), "2", *(
            f"{rows[-1][name]:,}" for name in ("read", "documents", "tokens", "dropped", "known")
        ), "3.5 s", "1 s", "2 s",
    ]  # fmt: skip
    assert ("100 more are in report.json" in shown.text) == (count == 600)
    assert not shown.named("script")


def test_a_compaction_is_told(manifest: Manifest, report: dict[str, Any]) -> None:
    rows = [generation(number, number) for number in (1, 2, 3)]
    assert "compacted into 1." in shown_on(manifest, report, rows).text
    (first,) = manifest.generations
    whole = replace(
        manifest, generations=(first, replace(first, name="b"), replace(first, name="c"))
    )
    assert "compacted" not in shown_on(whole, report, rows).text


def test_a_name_stays_text(manifest: Manifest, report: dict[str, Any]) -> None:
    evil = "<script>alert(1)</script>"
    rows = [generation(1, 0), generation(2, 1, name=evil, lag=lag(1, 2))]
    shown = shown_on(manifest, report, rows)
    assert not shown.named("script")
    assert evil in shown.text


def test_a_dataset_of_one_generation_has_no_such_section(
    manifest: Manifest, report: dict[str, Any]
) -> None:
    assert len(report["generations"]) == 1
    shown = Page(page(manifest, report))
    assert shown.named("section")[0] == {"id": "funnel"}
