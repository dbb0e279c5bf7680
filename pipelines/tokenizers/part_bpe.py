"""Byte-pair encoding of many short parts at once.

In each round every part joins the pair whose piece has the best score, the leftmost of several,
until it has none: the order in which the library takes them (google/sentencepiece,
src/bpe_model.cc). All parts' symbols stand in one array, and lead to their neighbours:

    place     0     1     2     3     4     5    6  7  8    9
    symbol    donk  -     -     -     ey    -    d  a  y    -
    after     4                       9          7  8  9         9, behind all, is nothing
    before    9                       0          9  6  7

"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.pair_table import NONE, NOTHING, PairTable
from pipelines.tokenizers.sentencepiece_model import VocabularyPiece

_ROW_BITS = 4
_ROW = (1 << _ROW_BITS) - 1
MAX_CHARS = 1 << _ROW_BITS
"""Parts have at most so many characters."""

_Array = npt.NDArray[np.int64]


class PartBpe:
    """The pairs of symbols that a model joins."""

    def __init__(self, pieces: Sequence[VocabularyPiece]) -> None:
        """Prepare the pairs of ordinary pieces, of which no two long ones have the same score.

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
        found = [
            (ids[text[:at]], ids[text[at:]], rank)
            for rank, text in enumerate(texts)
            for at in range(1, len(text))
            if text[:at] in ids and text[at:] in ids
        ]
        lefts, rights, ranks = np.array(found, np.int64).reshape(-1, 3).T
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
        there = grown[:-1] != NOTHING
        return grown[:-1][there], np.add.reduceat(there, starts, dtype=np.int64)

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
            # What is now beside the new symbol, on its right and on its left. Where that is
            # nothing, no value has a bit that a row could change.
            order[left] = self._pairs.find(joined, symbols.take(beyond)) | rows
            order[ahead] = self._pairs.find(symbols.take(ahead), joined) | (ahead - starts & _ROW)
