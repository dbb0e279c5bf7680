"""Random numbers of samples: each is a function of the sample's key, a purpose and a counter.

    key of a sample ─▶ derive(key, purpose) = word ─▶ derive(word, counter) = word of a stream

No generator has a state that advances, so a sample's numbers depend neither on its batch nor on
what was drawn before. The hash is that of `shards.order.permutation`; a purpose never changes its
number.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from shards.order.permutation import Words, derive

Integers = NDArray[np.int64]


class Purpose(IntEnum):
    """What a number decides."""

    IS_SHORT = 0
    SHORT_LENGTH = 1
    SHORT_START = 2
    TASK = 3
    IS_SINGLE = 4
    SPAN_LENGTHS = 5
    SPAN_SHARE = 6
    SPAN_ORDER = 7
    SPAN_PLACES = 8
    SENTENCE_ORDER = 9
    GENERATION_LENGTH = 10
    IS_INFILL = 11
    INFILL_START = 12
    BLOCK_ORDER = 13
    BLOCK_MASK = 14
    CONTEXT_MASK = 15
    SHIFT = 16


_ALL_ROWS = slice(None)


class SampleRng:
    """The random numbers of a batch, a row per sample."""

    def __init__(self, keys: Words) -> None:
        self._words = derive(keys[:, None], np.arange(len(Purpose)))

    def words(self, purpose: Purpose, rows: Integers | slice = _ALL_ROWS) -> Words:
        """Return uint64[n]: one word for each of these rows."""
        words: Words = self._words[rows, purpose]
        return words

    def stream(self, purpose: Purpose, rows: Integers, counters: Integers) -> Words:
        """Return a word for each row and counter; the shapes broadcast."""
        return derive(self._words[rows, purpose], counters)


def integers_below(words: Words, limits: Integers) -> Integers:
    """Return integers in [0, limit), limits from 1 to 2^31, elementwise."""
    return (((words >> 32) * limits.astype(np.uint64)) >> 32).astype(np.int64)


def happens(words: Words, probability: float) -> NDArray[np.bool_]:
    """Return for each word whether an event of this probability happens."""
    return (words >> 11) < int(probability * 2**53)


def shuffled_order(groups: Integers, words: Words) -> NDArray[np.intp]:
    """Return the indices that sort by group, a number below 2^32, and within it by word."""
    return np.argsort((groups.astype(np.uint64) << 32) | (words >> 32), kind="stable")
