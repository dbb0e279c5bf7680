import numpy as np
import pytest

from trainer.blanks.sample_rng import Purpose, SampleRng, happens, integers_below, shuffled_order

KEYS = np.array([0, 1, 2**64 - 1], np.uint64)
EVERY = np.arange(3)


def test_golden_words() -> None:
    """They never change: what becomes of a sample depends on them."""
    rng = SampleRng(KEYS)
    words = rng.words(Purpose.TASK, EVERY)
    streams = rng.stream(Purpose.SPAN_LENGTHS, EVERY[:, None], np.arange(2))
    assert [f"{word:016x}" for word in words] == [
        "f88bb8a8724c81ec",
        "71c18690ee42c90b",
        "6d1db36ccba982d2",
    ]
    assert [f"{word:016x}" for word in streams.ravel()] == [
        "13d3e7a6c63b012c",
        "56cdd0d9683f691d",
        "fe70ac4117edc3c7",
        "256ad9cd03bf0193",
        "0159ea98cb5d2474",
        "83b7622cccfc4edd",
    ]


def test_purposes_keep_their_numbers() -> None:
    assert [purpose.value for purpose in Purpose] == list(range(17))
    assert Purpose.TASK == 3
    assert Purpose.SHIFT == 16


def test_words_differ_by_key_purpose_and_counter() -> None:
    rng = SampleRng(np.arange(50, dtype=np.uint64))
    rows = np.arange(50)
    words = [rng.words(purpose, rows) for purpose in Purpose]
    words += [rng.stream(purpose, rows[:, None], np.arange(20)).ravel() for purpose in Purpose]
    together = np.concatenate(words)
    assert len(np.unique(together)) == len(together)


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


def test_shuffled_sorts_by_group() -> None:
    groups = np.array([2, 0, 2, 1, 0, 2])
    words = np.array([5, 9, 1, 7, 3, 2], np.uint64) << np.uint64(40)
    assert shuffled_order(groups, words).tolist() == [4, 1, 3, 2, 5, 0]
