"""An unchanging table by pairs of ids, looked up many at a time with two reads each.

It is a perfect hash by displacement (Belazzougui, Botelho, Dietzfelbinger: Hash, Displace, and
Compress, 2009): pairs fall into buckets, and each bucket has a factor of its own by which all its
pairs find places that no others have.
"""

import numpy as np
import numpy.typing as npt

ID_BITS, VALUE_BITS = 20, 23
"""A pair and its value make a number of 63 bits."""
NONE = (1 << VALUE_BITS) - 1
"""The value of a pair that is not in the table: all bits are set."""
NOTHING = (1 << ID_BITS) - 1
"""An id that is in no pair."""

# Odd numbers that spread keys (primes of xxHash); even steps keep factors odd.
_BUCKET_FACTOR = np.uint64(0x9E3779B185EBCA87)
_FACTOR, _STEP = np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F8)

_Array = npt.NDArray[np.int64]
_Keys = npt.NDArray[np.uint64]


class PairTable:
    """Values of pairs, 0 to `NONE` - 1."""

    def __init__(self, lefts: _Array, rights: _Array, values: _Array) -> None:
        """Make the table of so many pairs, all different, of ids below `NOTHING`.

        Raises:
            ValueError: an id or a value is too large.
        """
        highest = max(lefts.max(initial=0), rights.max(initial=0))
        if highest >= NOTHING or values.max(initial=0) >= NONE:
            raise ValueError(f"there are {highest} pieces or more, too many for a table of pairs")
        bits = max(4, len(lefts).bit_length())
        self._shift = np.uint64(64 - bits - 1)
        self._bucket_shift = np.uint64(64 - bits + 2)
        self._factors = np.full(1 << bits - 2, _FACTOR)
        # What no pair has, in the top bits, where nothing stands.
        self._entries = np.full(2 << bits, -1)
        self._place(_key(lefts, rights), values)

    def find(self, lefts: _Array, rights: _Array) -> _Array:
        """Return the value of each pair."""
        keys = _key(lefts, rights)
        wanted = keys.view(np.uint64)
        factors = self._factors.take((wanted * _BUCKET_FACTOR >> self._bucket_shift).view(np.int64))
        factors *= wanted
        factors >>= self._shift
        entries = self._entries.take(factors.view(np.int64))
        return np.where(entries >> VALUE_BITS == keys, entries & NONE, NONE)

    def _place(self, keys: _Array, values: _Array) -> None:
        buckets = (keys.view(np.uint64) * _BUCKET_FACTOR >> self._bucket_shift).view(np.int64)
        owners = np.full(len(self._entries), -1)
        while len(keys):
            factors = self._factors[buckets]
            places = (keys.view(np.uint64) * factors >> self._shift).view(np.int64)
            free = self._entries[places] < 0
            # Of several for a place the last has it; a bucket is placed as a whole or not at all.
            owners[places] = np.arange(len(keys))
            alone = free & (owners[places] == np.arange(len(keys)))
            waits = np.zeros(len(self._factors), np.bool_)
            waits[buckets[~alone]] = True
            now = ~waits[buckets]
            self._entries[places[now]] = keys[now] << VALUE_BITS | values[now]
            self._factors[waits] += _STEP
            keys, values, buckets = keys[~now], values[~now], buckets[~now]


def _key(lefts: _Array, rights: _Array) -> _Array:
    return lefts << ID_BITS | rights
