"""A bounded memory from parts of texts to their ids, looked up many at a time.

    slot              1              2            ...
    keys              hash           hash               64 bits of a part's code points
    text_starts       0              3                  its code points stand in `texts`
    id_starts         0              2                  its ids stand in `ids`

Slot 0 is none. A hash table of slots, with linear probing and at most half full, leads from a hash
to its slot. The hash only finds: whether a slot holds the very part is the caller's to compare.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]

# The golden ratio in 64 bits spreads hashes over the table (Knuth, TAOCP 3, section 6.4).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class PartCache:
    """Parts and their ids, about 100 bytes each."""

    def __init__(self, *, bits: int) -> None:
        """Make a cache for 2 ** bits parts."""
        self._shift = np.uint64(64 - bits - 1)
        self._table = np.zeros(2 << bits, np.int32)
        self._limit = 1 << bits
        self._keys = np.zeros(self._limit + 1, np.uint64)
        self.text_starts = np.zeros(self._limit + 2, np.int64)
        self.id_starts = np.zeros(self._limit + 2, np.int64)
        self.texts = np.zeros(self._limit, np.int32)
        self.ids = np.zeros(self._limit, np.int32)
        self._next = 1

    def make_room(self, parts: int) -> None:
        """Forget everything if so many more parts would not fit, or texts or ids run long."""
        size = 4 * self._limit
        long = self.text_starts[self._next] > size or self.id_starts[self._next] > size
        if long or self._next + parts > self._limit:
            self._next = 1
            self._table[:] = 0

    def find(self, hashes: _Hashes) -> npt.NDArray[np.int32]:
        """Return the slot of each hash, 0 for what is not here."""
        at = self._home(hashes)
        slots = self._table.take(at)
        wrong = np.flatnonzero((self._keys.take(slots) != hashes) & (slots != 0))
        while len(wrong):
            at[wrong] = (at[wrong] + 1) % len(self._table)
            slots[wrong] = self._table[at[wrong]]
            found = slots[wrong]
            wrong = wrong[(self._keys[found] != hashes[wrong]) & (found != 0)]
        return slots

    def add(
        self,
        hashes: _Hashes,
        *,
        texts: tuple[npt.NDArray[Any], _Array],
        ids: tuple[npt.NDArray[Any], _Array],
    ) -> npt.NDArray[np.int32]:
        """Return the slots of new parts, whose hashes differ from each other and from all here.

        There has to be room for them. Code points and ids are all parts' in one array, and how
        many each has.
        """
        slots = np.arange(self._next, self._next + len(hashes), dtype=np.int32)
        self._next += len(hashes)
        self._keys[slots] = hashes
        self.texts = _extend(self.texts, self.text_starts, slots, texts)
        self.ids = _extend(self.ids, self.id_starts, slots, ids)
        self._insert(slots)
        return slots

    def _insert(self, slots: npt.NDArray[np.int32]) -> None:
        at = self._home(self._keys[slots])
        while len(slots):
            free = self._table[at] == 0
            # Of several with the same place the last one written has it.
            self._table[at[free]] = slots[free]
            left = self._table[at] != slots
            slots, at = slots[left], (at[left] + 1) % len(self._table)

    def _home(self, hashes: _Hashes) -> _Array:
        return ((hashes * _SPREAD) >> self._shift).view(np.int64)


def _extend(
    store: npt.NDArray[np.int32],
    starts: _Array,
    slots: npt.NDArray[np.int32],
    added: tuple[npt.NDArray[Any], _Array],
) -> npt.NDArray[np.int32]:
    """Put the values of new slots behind all others; return the store, larger if need be."""
    values, lengths = added
    begin = int(starts[slots[0]])
    end = begin + len(values)
    starts[slots + 1] = begin + np.cumsum(lengths)
    if end > len(store):
        larger = np.zeros(max(end, 2 * len(store)), store.dtype)
        larger[:begin] = store[:begin]
        store = larger
    store[begin:end] = values
    return store
