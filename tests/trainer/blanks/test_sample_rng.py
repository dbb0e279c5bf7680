import numpy as np
import pytest

from trainer.blanks.sample_rng import Purpose, SampleRng, happens, integers_below


def test_integers_below_are_uniform_and_within() -> None:
    words = SampleRng(np.arange(30_000, dtype=np.uint64)).words(Purpose.TASK, np.arange(30_000))
    numbers = integers_below(words, np.full(30_000, 6))
    counts = np.bincount(numbers, minlength=6)
    assert len(counts) == 6
    assert ((counts - 5000) ** 2 / 5000).sum() < 30  # χ² of 5 degrees, 1e-5
    edges = np.array([0, 2**64 - 1], np.uint64)
    assert integers_below(edges, np.array([7, 7])).tolist() == [0, 6]
    assert integers_below(edges, np.array([1, 1])).tolist() == [0, 0]
    assert integers_below(edges, np.array([2**31, 2**31])).tolist() == [0, 2**31 - 1]


@pytest.mark.parametrize("probability", [0.0, 0.02, 0.5, 1.0])
def test_happens(probability: float) -> None:
    words = SampleRng(np.arange(20_000, dtype=np.uint64)).words(Purpose.TASK, np.arange(20_000))
    share = happens(words, probability).mean()
    assert share == pytest.approx(
        probability, abs=5 * (probability * (1 - probability) / 2e4) ** 0.5
    )
    assert not happens(np.array([0], np.uint64), 0.0).any()
    assert happens(np.array([2**64 - 1], np.uint64), 1.0).all()
