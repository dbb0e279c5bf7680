"""A bounded memory from parts of texts to their ids.

    slot              1              2            ...
    text_starts       0              3                  its code points stand in `texts`
    id_starts         0              2                  its ids stand in `ids`

Slot 0 is none. A part's key leads to its slot; whether a slot holds the very part is the caller's
to see where different parts can have the same key.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.hash_index import HashIndex, Keys, Slots

_Array = npt.NDArray[np.int64]


class PartCache:
    """Parts and their ids, about 60 bytes each."""

    def __init__(self, *, bits: int) -> None:
        """Make a cache for 2 ** bits parts."""
        self._index = HashIndex(bits=bits)
        limit = self._index.limit
        self.find = self._index.find
        """Returns the slot of each key, 0 for one that is not here."""
        self.text_starts = np.zeros(limit + 2, np.int64)
        self.id_starts = np.zeros(limit + 2, np.int64)
        self.texts = np.zeros(limit, np.int32)
        self.ids = np.zeros(limit, np.int32)

    def make_room(self, parts: int) -> bool:
        """Return whether so many more parts fit, once all others are forgotten if need be."""
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
        """Return the slots of new parts, for which there has to be room.

        Code points and ids are those of all parts in one array, and how many each has.
        """
        first = self._index.count + 1
        slots = np.arange(first, first + len(keys))
        self.texts = _extended(self.texts, self.text_starts, slots, texts)
        self.ids = _extended(self.ids, self.id_starts, slots, ids)
        # Last, so that nothing is found that an error has left without its ids.
        return self._index.add(keys)


def _extended(
    store: npt.NDArray[np.int32],
    starts: _Array,
    slots: _Array,
    added: tuple[npt.NDArray[Any], _Array],
) -> npt.NDArray[np.int32]:
    """Put the values of new slots behind all others; return the store, larger if need be."""
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
