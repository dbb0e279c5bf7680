"""An index of 64-bit keys, looked up many at a time: a hash table with linear probing."""

from typing import Any

import numpy as np
import numpy.typing as npt

# The golden ratio in 64 bits spreads keys over the table (Knuth, TAOCP 3, section 6.4).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

Keys = npt.NDArray[np.uint64]
Slots = npt.NDArray[np.int32]


class HashIndex:
    """Numbers keys from 1 on in the order in which they come, 2 ** bits at most."""

    def __init__(self, *, bits: int) -> None:
        """Make an empty index, whose table is at most half full."""
        self.limit = 1 << bits
        """How many keys there is room for."""
        self.count = 0
        """How many keys are here."""
        self._shift = np.uint64(64 - bits - 1)
        self._mask = (2 << bits) - 1
        self._table = np.zeros(2 << bits, np.int32)
        self._keys = np.zeros(self.limit + 1, np.uint64)

    def clear(self) -> None:
        """Forget all keys."""
        self.count = 0
        self._table[:] = 0

    def find(self, keys: Keys) -> Slots:
        """Return the number of each key, 0 for one that is not here."""
        at = self._home(keys)
        slots = self._table.take(at)
        wrong = np.flatnonzero((self._keys.take(slots) != keys) & (slots != 0))
        while len(wrong):
            at[wrong] = (at[wrong] + 1) & self._mask
            found = self._table[at[wrong]]
            slots[wrong] = found
            wrong = wrong[(self._keys[found] != keys[wrong]) & (found != 0)]
        return slots

    def add(self, keys: Keys) -> Slots:
        """Return the numbers of new keys, for which there has to be room, and none twice."""
        slots = np.arange(self.count + 1, self.count + 1 + len(keys), dtype=np.int32)
        self.count += len(keys)
        self._keys[slots] = keys
        left, at = slots, self._home(keys)
        while len(left):
            free = self._table[at] == 0
            # Of several for the same place the last one written has it.
            self._table[at[free]] = left[free]
            later = self._table[at] != left
            left, at = left[later], (at[later] + 1) & self._mask
        return slots

    def _home(self, keys: Keys) -> npt.NDArray[Any]:
        return ((keys * _SPREAD) >> self._shift).view(np.int64)
