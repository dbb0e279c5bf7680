"""Byte-pair encoding of many short parts at once.

In each round every part joins the pair whose piece has the best score, the leftmost among equals,
until no pair is left: the library's order (google/sentencepiece, src/bpe_model.cc). The symbols of
all parts stand in one array, linked to their neighbours:

    place     0     1     2     3     4     5    6  7  8    9
    symbol    donk  -     -     -     ey    -    d  a  y    -
    after     4                       9          7  8  9         9, behind all, is nothing
    before    9                       0          9  6  7

Pairs are looked up many at a time, with two reads each, in a perfect hash table by displacement
(Belazzougui, Botelho, Dietzfelbinger: Hash, Displace, and Compress, 2009): pairs fall into buckets,
and each bucket has a factor of its own that sends its pairs to places that no others have.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.sentencepiece_model import VocabularyPiece

_ROW_BITS = 4
_ROW = (1 << _ROW_BITS) - 1
MAX_CHARS = 1 << _ROW_BITS
"""The most characters a part may have."""

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


class PartBpe:
    """The pairs of symbols that a model joins."""

    def __init__(self, pieces: Sequence[VocabularyPiece]) -> None:
        """Prepare the pairs of ordinary pieces, whose scores differ where they are long.

        Raises:
            ValueError: there are too many.
        """
        ids = {piece.text: piece.id for piece in pieces}
        joined = sorted(
            (piece for piece in pieces if len(piece.text) > 1), key=lambda piece: -piece.score
        )
        if len(joined) > NONE >> _ROW_BITS:
            raise ValueError(f"there are {len(joined)} long pieces")
        self._by_rank = np.array([piece.id for piece in joined], np.int64)
        texts = [piece.text for piece in joined]
        ranked_pairs = [
            (ids[text[:cut]], ids[text[cut:]], rank)
            for rank, text in enumerate(texts)
            for cut in range(1, len(text))
            if text[:cut] in ids and text[cut:] in ids
        ]
        lefts, rights, ranks = np.array(ranked_pairs, np.int64).reshape(-1, 3).T
        # The order of joining, with room for the row.
        self._pairs = PairTable(lefts, rights, ranks << _ROW_BITS)

    def encode(self, symbols: _Array, lengths: _Array) -> tuple[_Array, _Array]:
        """Return the ids of parts, and how many each has.

        Args:
            symbols: the ids of all parts' characters, in one array.
            lengths: how many characters each part has, at most `MAX_CHARS`.
        """
        starts = np.cumsum(lengths) - lengths
        nothing = len(symbols)
        grown = np.append(symbols, NOTHING)
        after = np.arange(1, nothing + 2)
        before = np.arange(-1, nothing)
        after[starts + lengths - 1] = before[starts] = nothing
        rows = np.arange(nothing) - np.repeat(starts, lengths)
        order = self._pairs.find(grown[:-1], grown.take(after[:-1])) | rows
        self._join(grown, np.append(order, NONE), (before, after), starts)
        left_over = grown[:-1] != NOTHING
        return grown[:-1][left_over], np.add.reduceat(left_over, starts, dtype=np.int64)

    def _join(
        self, symbols: _Array, order: _Array, beside: tuple[_Array, _Array], starts: _Array
    ) -> None:
        before, after = beside
        while len(starts):
            best = np.minimum.reduceat(order, starts)
            alive = np.flatnonzero(best != NONE)
            best, starts = best.take(alive), starts.take(alive)
            rows = best & _ROW
            left = starts + rows
            right = after.take(left)
            beyond = after.take(right)
            ahead = before.take(left)
            joined = self._by_rank.take(best >> _ROW_BITS)
            symbols[left] = joined
            symbols[right] = NOTHING
            order[right] = NONE
            after[left] = beyond
            before[beyond] = left
            # The pairs of the new symbol with its new neighbours, on the right and on the left. A
            # pair with nothing has the value NONE, whose bits are all set: no row changes it.
            order[left] = self._pairs.find(joined, symbols.take(beyond)) | rows
            order[ahead] = self._pairs.find(symbols.take(ahead), joined) | (ahead - starts & _ROW)


class PairTable:
    """An unchanging table of values, 0 to `NONE` - 1, by pairs of ids."""

    def __init__(self, lefts: _Array, rights: _Array, values: _Array) -> None:
        """Make the table of these pairs, which must differ, of ids below `NOTHING`.

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
        # The top bits of a free place are those of no pair.
        self._entries = np.full(2 << bits, -1)
        self._place(_pair_key(lefts, rights), values)

    def find(self, lefts: _Array, rights: _Array) -> _Array:
        """Return the value of each pair."""
        keys = _pair_key(lefts, rights)
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
            # The last of several rivals gets a place; a bucket is placed as a whole or not at all.
            owners[places] = np.arange(len(keys))
            alone = free & (owners[places] == np.arange(len(keys)))
            waits = np.zeros(len(self._factors), np.bool_)
            waits[buckets[~alone]] = True
            now = ~waits[buckets]
            self._entries[places[now]] = keys[now] << VALUE_BITS | values[now]
            self._factors[waits] += _STEP
            keys, values, buckets = keys[~now], values[~now], buckets[~now]


def _pair_key(lefts: _Array, rights: _Array) -> _Array:
    return lefts << ID_BITS | rights
