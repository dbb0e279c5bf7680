"""A bounded memory from parts of texts to their ids.

    slot              1              2            ...
    text_starts       0              3                  its code points stand in `texts`
    id_starts         0              2                  its ids stand in `ids`

Slot 0 means none. A part's key leads to its slot. Where different parts can have the same key, the
caller has to check that the slot holds that very part.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

# The golden ratio in 64 bits spreads keys over the table (Knuth, TAOCP 3, section 6.4).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

Keys = npt.NDArray[np.uint64]
Slots = npt.NDArray[np.int32]
_Array = npt.NDArray[np.int64]


class PartCache:
    """Parts and their ids, about 60 bytes each."""

    def __init__(self, *, bits: int) -> None:
        """Make a cache for 2 ** bits parts."""
        self._index = HashIndex(bits=bits)
        limit = self._index.limit
        self.find = self._index.find
        """Returns the slot of each key, 0 for an unknown one."""
        self.text_starts = np.zeros(limit + 2, np.int64)
        self.id_starts = np.zeros(limit + 2, np.int64)
        self.texts = np.zeros(limit, np.int32)
        self.ids = np.zeros(limit, np.int32)

    def make_room(self, parts: int) -> bool:
        """Return whether this many more parts fit; if necessary, forget all others first."""
        limit, after = self._index.limit, self._index.count + 1
        if (
            after + parts > limit
            or self.text_starts[after] > 4 * limit
            or self.id_starts[after] > 4 * limit
        ):
            self._index.clear()
        return parts < limit

    def add(
        self,
        keys: Keys,
        *,
        texts: tuple[npt.NDArray[Any], _Array],
        ids: tuple[npt.NDArray[Any], _Array],
    ) -> Slots:
        """Add parts that are not in the cache, which must have room, and return their slots.

        Args:
            keys: one for each part.
            texts: the code points of all parts in one array, and how many each has.
            ids: the ids of all parts in one array, and how many each has.
        """
        first = self._index.count + 1
        slots = np.arange(first, first + len(keys))
        self.texts = _extended(self.texts, self.text_starts, slots, texts)
        self.ids = _extended(self.ids, self.id_starts, slots, ids)
        # Last, so that no key leads to a slot that an error has left without its ids.
        return self._index.add(keys)


def _extended(
    store: npt.NDArray[np.int32],
    starts: _Array,
    slots: _Array,
    added: tuple[npt.NDArray[Any], _Array],
) -> npt.NDArray[np.int32]:
    """Append the values of new slots; return the store, a larger copy where it was full."""
    values, lengths = added
    begin = int(starts[slots[0]]) if len(slots) else 0
    end = begin + len(values)
    starts[slots + 1] = begin + np.cumsum(lengths)
    if end > len(store):
        larger = np.zeros(max(end, 2 * len(store)), store.dtype)
        larger[:begin] = store[:begin]
        store = larger
    store[begin:end] = values
    return store


class HashIndex:
    """Numbers up to 2 ** bits keys, from 1 on, in the order in which they are added.

    It is a hash table with linear probing, in which many keys are looked up at a time.
    """

    def __init__(self, *, bits: int) -> None:
        """Make an empty index, whose table is at most half full."""
        self.limit = 1 << bits
        """How many keys there is room for."""
        self.count = 0
        """How many keys it holds."""
        self._shift = np.uint64(64 - bits - 1)
        self._mask = (2 << bits) - 1
        self._table = np.zeros(2 << bits, np.int32)
        self._keys = np.zeros(self.limit + 1, np.uint64)

    def clear(self) -> None:
        """Forget all keys."""
        self.count = 0
        self._table[:] = 0

    def find(self, keys: Keys) -> Slots:
        """Return the number of each key, 0 for an unknown one."""
        places = self._home(keys)
        slots = self._table.take(places)
        wrong = np.flatnonzero((self._keys.take(slots) != keys) & (slots != 0))
        while len(wrong):
            places[wrong] = (places[wrong] + 1) & self._mask
            next_slots = self._table[places[wrong]]
            slots[wrong] = next_slots
            wrong = wrong[(self._keys[next_slots] != keys[wrong]) & (next_slots != 0)]
        return slots

    def add(self, keys: Keys) -> Slots:
        """Add unknown keys, all different, for which there must be room; return their numbers."""
        slots = np.arange(self.count + 1, self.count + 1 + len(keys), dtype=np.int32)
        self.count += len(keys)
        self._keys[slots] = keys
        left, places = slots, self._home(keys)
        while len(left):
            free = self._table[places] == 0
            # Of several for the same place the last one written gets it.
            self._table[places[free]] = left[free]
            later = self._table[places] != left
            left, places = left[later], (places[later] + 1) & self._mask
        return slots

    def _home(self, keys: Keys) -> npt.NDArray[Any]:
        return ((keys * _SPREAD) >> self._shift).view(np.int64)
