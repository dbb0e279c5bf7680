import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.charts import HEIGHT, Chart, ThresholdLine, caption, chart, quantile
from pipelines.report.labels import WIDTH, Text
from tests.pipelines.report.reading import counted


def numbers_of(path: str, pattern: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, match.groups())) for match in re.finditer(pattern, path)]


def test_kept_is_above_the_line_and_dropped_below_with_the_heights_of_shares() -> None:
    counts = {"kept": counted(0.1, 0.1, 0.1, 0.5), "dropped": counted(0.1, 0.5)}
    drawn = chart(counts, [])
    pattern = r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)V"
    bars = [bar for path in drawn.bars.values() for bar in numbers_of(path, pattern)]
    assert list(drawn.bars) == ["kept", "dropped"]
    assert len(bars) == 4
    heights = [base - tip for _, base, tip, _ in bars]
    assert heights == pytest.approx([HEIGHT * s / 1.25 for s in (0.75, 0.25, -0.5, -0.5)], abs=0.2)
    assert all(0 <= left < right <= WIDTH for left, _, _, right in bars)


def test_a_bar_that_would_hide_the_others_is_cut_and_says_its_share() -> None:
    counts = {"kept": counted(*[0.0] * 98, 0.05, 0.1), "dropped": {}}
    ((_, text),) = chart(counts, []).cuts
    assert text.text == "98.0 %"
    assert not chart({"kept": counted(0, 0, 0, 0.1)}, []).cuts


def test_every_threshold_is_a_line_at_its_value_with_a_label_of_its_own() -> None:
    counts = {"kept": counted(*np.linspace(0, 1, 50)), "dropped": {}}
    thresholds = [ThresholdLine(value=v, label=f"max {v} <zh>") for v in (0.5, 0.51, 0.52, 0.9)]
    drawn = chart(counts, thresholds).thresholds
    lines = [numbers_of(path, r"M([\d.]+) ") for path, _ in drawn]
    assert lines == sorted(lines)
    assert lines[0][0][0] == pytest.approx(6 + (WIDTH - 12) * 50 / 101, abs=0.1)
    assert [text.text for _, text in drawn] == [line.label for line in thresholds]
    assert len({(text.x, text.y) for _, text in drawn}) == 4
    assert len({text.y for _, text in drawn[:3]}) == 3, "labels of neighbours stand in rows"


@pytest.mark.parametrize(
    ("values", "part", "value"),
    [
        ([0, 0, 0, 5], 0.5, 0),
        ([3, 5, 8], 0.5, 5),  # whole numbers stay whole
        ([3, 5, 8], 0.95, 8),
        ([1, 1, 2.5], 0.95, 2.49),  # between 2 and 3 there is none: not whole
        ([0.25], 0.5, 0.255),
    ],
)
def test_quantiles(values: list[float], part: float, value: float) -> None:
    assert quantile(counted(*values), part) == pytest.approx(value, abs=0.01)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_a_quantile_is_near_the_true_one(values: list[float], part: float) -> None:
    rank = int(np.ceil(part * len(values) - 1e-9)) - 1
    true = sorted(values)[max(rank, 0)]
    assert quantile(counted(*values), part) == pytest.approx(true, rel=0.1, abs=0.6)


def test_a_caption_leaves_out_what_is_empty() -> None:
    assert caption({"kept": counted(5, 5), "dropped": {}}) == "2 kept: median 5"


def texts_of(drawn: Chart) -> list[Text]:
    marks = [text for _, text in (*drawn.cuts, *drawn.thresholds)]
    return [*drawn.ticks, *marks]


def overlap(text: Text, other: Text) -> bool:
    """Whether two texts meet; letters reach 9.4 points above their line and 2.4 below (DejaVu)."""
    (left, right), (other_left, other_right) = text.span, other.span
    return abs(text.y - other.y) < 11.7 and left < other_right and other_left < right


VALUES = st.lists(
    st.one_of(
        st.floats(0, 1),
        st.floats(0, 1e9),
        st.sampled_from([0, 1e-4, 0.5, 1, 1.01, 699, 700, 1e15]),
    ),
    min_size=1,
    max_size=40,
)
BOUNDS = st.lists(st.sampled_from([0, 1e-6, 0.1, 0.5, 0.7, 0.71, 1, 50, 51, 1e6]), max_size=9)
LANGUAGES = st.sampled_from(["", " zh", " zh,en,WW", " 汉语", " zho_Hans", " 12 lang."])


@given(
    VALUES, VALUES, st.lists(st.tuples(st.sampled_from([0, 0.5, 1, 51, 1e6]), LANGUAGES)), BOUNDS
)
def test_no_two_texts_of_a_picture_overlap_and_none_leaves_it(
    kept: list[float], dropped: list[float], named: list[tuple[float, str]], bounds: list[float]
) -> None:
    lines = [(bound, f"max {bound:,.6g}{name}") for bound, name in named]
    lines += [(bound, f"min {bound:,.6g}") for bound in bounds]
    thresholds = [ThresholdLine(value=bound, label=label) for bound, label in set(lines)]
    drawn = chart({"kept": counted(*kept), "dropped": counted(*dropped)}, thresholds)
    texts = texts_of(drawn)
    assert drawn.ticks
    assert not [pair for pair in combinations(texts, 2) if overlap(*pair)]
    for text in texts:
        left, right = text.span
        assert -0.01 <= left < right <= WIDTH + 0.01
        assert 9 <= text.y <= drawn.height - 2.4


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([*[0.5] * 200, 1.0, 7.0], ["0", "0.5", "1", "> 1"]),
        ([*[0.1] * 200, 7.0], ["0", "0.1", "0.2", "> 1"]),
        ([*[0.3] * 200, 7.0], ["0", "0.25", "0.5", "> 1"]),
        ([0.0, 300.0, 100_000.0], ["0", "1k", "10k", "100k"]),
        ([1e-2, 2e15], ["0.01", "1", "100", "10k", "1M", "100M", "10G", "1T", "100T"]),
    ],
)
def test_a_row_of_ticks_that_is_too_narrow_is_thinned_evenly(
    values: list[float], ticks: list[str]
) -> None:
    drawn = chart({"kept": counted(*values), "dropped": {}}, [])
    assert [text.text for text in drawn.ticks] == ticks
