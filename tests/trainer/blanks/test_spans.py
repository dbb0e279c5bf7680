import numpy as np
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


def test_places_are_uniform() -> None:
    """One blank of two in a run of five: four places."""
    spans = spans_of(runs_of(*[[5]] * 8000), 1, longest=2)
    counts = np.bincount(spans.starts[spans.sizes == 2], minlength=4)
    expected = counts.sum() / 4
    assert len(counts) == 4
    assert ((counts - expected) ** 2 / expected).sum() < 26  # χ² of 3 degrees, 1e-5
