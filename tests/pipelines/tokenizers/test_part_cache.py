import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.tokenizers.part_cache import HashIndex, PartCache


def test_a_cache_forgets_when_it_is_full() -> None:
    cache = PartCache(bits=4)
    letters = np.array([97, 98, 99], np.int32)
    for turn in range(20):
        assert cache.make_room(3)
        keys = np.array([1, 2, 3], np.uint64) + np.uint64(10 * turn)
        slots = cache.add(
            keys, texts=(letters, np.array([1, 1, 1])), ids=(letters + turn, np.array([2, 0, 1]))
        )
        assert cache.find(keys).tolist() == slots.tolist()
        starts = cache.id_starts[slots[0]], cache.id_starts[slots[2] + 1]
        assert cache.ids[slice(*starts)].tolist() == (letters + turn).tolist()
    assert not cache.find(np.array([1], np.uint64)).any()
    assert not cache.make_room(16)


def test_a_cache_finds_nothing_that_an_error_left_half_done() -> None:
    cache = PartCache(bits=4)
    key, letter, one = np.array([1], np.uint64), np.array([97]), np.array([1])
    with pytest.raises(ValueError, match="broadcast"):
        cache.add(key, texts=(letter, one), ids=(letter, np.array([1, 1, 1])))
    assert cache.find(key).tolist() == [0]
    slots = cache.add(key, texts=(letter, one), ids=(letter, one))
    assert cache.find(key).tolist() == slots.tolist()
    assert cache.ids[cache.id_starts[slots[0]]] == 97


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=64), st.integers(0, 64))
def test_an_index_finds_the_keys_added(keys: list[int], count: int) -> None:
    index = HashIndex(bits=6)
    some, others = np.array(keys[:count], np.uint64), np.array(keys[count:], np.uint64)
    assert index.add(some).tolist() == list(range(1, len(some) + 1))
    assert index.find(others).tolist() == [0] * len(others)
    index.add(others)
    assert index.find(np.array(keys, np.uint64)).tolist() == list(range(1, len(keys) + 1))
    index.clear()
    assert not index.find(np.array(keys, np.uint64)).any()


def test_an_index_of_keys_for_one_place() -> None:
    # Multiples of the inverse of the spreading factor stay next to each other.
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    keys = np.array([inverse * i % (1 << 64) for i in range(1, 60)], np.uint64)
    index = HashIndex(bits=6)
    index.add(keys)
    assert index.find(keys).tolist() == list(range(1, 60))
