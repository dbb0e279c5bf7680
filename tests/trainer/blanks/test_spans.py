from math import exp, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.texts import keys_of
from trainer.blanks.sample_rng import SampleRng
from trainer.blanks.spans import choose_token_spans
from trainer.blanks.text import Spans


def runs_of(*rows: list[int]) -> Spans:
    """Runs of these sizes, two tokens apart."""
    table = [
        (i, sum(sizes[:j]) + 2 * j, size)
        for i, sizes in enumerate(rows)
        for j, size in enumerate(sizes)
    ]
    columns = np.array(table, np.int64).reshape(-1, 3).T
    return Spans(*columns)


def spans_of(runs: Spans, budget: int, *, longest: int = 1000, first: int = 0) -> Spans:
    height = int(runs.rows.max(initial=-1)) + 1
    rng = SampleRng(keys_of(height, first=first))
    return choose_token_spans(runs, np.full(height, budget), rng=rng, longest=longest)


def test_lengths_are_poissons() -> None:
    """The reference's weights: of mean 3 on 1 to 39, mean of what is left 3.157187."""
    spans = spans_of(runs_of(*[[2000]] * 200), 300)
    weights = np.array([exp(-3) * 3**k / factorial(k) for k in range(1, 40)])
    assert weights.sum() == pytest.approx(0.950213, abs=1e-6)
    assert spans.sizes.mean() == pytest.approx(3.157187, abs=0.05)
    counts = np.bincount(spans.sizes, minlength=40)[1:12]
    expected = (weights / weights.sum() * len(spans.sizes))[:11]
    assert ((counts - expected) ** 2 / expected).sum() < 45  # χ² of 10 degrees, 1e-5 with the bias


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(1, 50), max_size=12), min_size=1, max_size=4),
    st.integers(1, 60),
    st.integers(1, 9),
    st.integers(0, 99),
)
def test_budget_and_room(rows: list[list[int]], budget: int, longest: int, first: int) -> None:
    runs = runs_of(*rows)
    spans = spans_of(runs, budget, longest=longest, first=first)
    keys = list(zip(spans.rows.tolist(), spans.starts.tolist(), strict=True))
    assert keys == sorted(keys)
    assert set(spans.rows.tolist()) == set(runs.rows.tolist())
    assert (spans.sizes >= 1).all()
    assert (spans.sizes <= longest).all()
    for row in set(runs.rows.tolist()):
        own = runs.rows == row
        mine = spans.rows == row
        starts, sizes = spans.starts[mine], spans.sizes[mine]
        assert (starts[1:] > (starts + sizes)[:-1]).all()
        run = np.searchsorted(runs.starts[own], starts, side="right") - 1
        assert (starts + sizes <= (runs.starts + runs.sizes)[own][run]).all()
        room = runs.sizes[own] + 1 - np.bincount(run, sizes + 1, own.sum())
        assert sizes.sum() < budget + longest
        assert sizes.sum() >= budget or room.max() <= 1


def test_a_full_row() -> None:
    """A budget of all there is: every other token at least, and no gap wider than one."""
    spans = spans_of(runs_of([11]), 11)
    assert spans.starts[0] == 0
    assert (spans.starts + spans.sizes)[-1] >= 10
    assert (spans.starts[1:] - (spans.starts + spans.sizes)[:-1] == 1).all()


@pytest.mark.parametrize(("size", "blank"), [(1, 1), (2, 2), (40, 3)])
def test_a_budget_of_one_is_one_blank(size: int, blank: int) -> None:
    spans = spans_of(runs_of(*[[size]] * 300), 1)
    assert spans.rows.tolist() == list(range(300))
    assert spans.sizes.mean() == pytest.approx(blank, rel=0.2)


def test_no_runs() -> None:
    assert len(spans_of(runs_of(), 5).rows) == 0


def test_places_are_uniform() -> None:
    """One blank of two in a run of five: four places."""
    spans = spans_of(runs_of(*[[5]] * 8000), 1, longest=2)
    counts = np.bincount(spans.starts[spans.sizes == 2], minlength=4)
    expected = counts.sum() / 4
    assert len(counts) == 4
    assert ((counts - expected) ** 2 / expected).sum() < 26  # χ² of 3 degrees, 1e-5


def test_runs_are_hit_by_their_length() -> None:
    spans = spans_of(runs_of(*[[10, 40, 150]] * 3000), 30)
    hits = np.bincount(np.searchsorted([0, 12, 54], spans.starts, side="right") - 1, spans.sizes)
    assert hits / hits.sum() == pytest.approx([0.05, 0.2, 0.75], rel=0.05)
