"""Texts, cut into parts that are encoded apart from each other.

BPE only ever joins neighbours into pieces. So where two characters stand side by side in no piece,
nothing is joined across, and the ids of a text are those of its parts, one behind the other:

    text     The cat  sat。好的，好的
    read     _The_cat_sat.好的,好的        a space in front, and one for each run of white space
    parts    _The|_cat|_sat|.|好的|,|好的

Of what the library does to a text before (google/sentencepiece, src/normalizer.cc) two things
reach beyond a part. White space at the ends and in runs is removed: that is done here. Some
characters are replaced together with the next: one that stands behind another in such a rule reads
as `ODD`, and its text is none that can be cut.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.hash_index import Keys
from pipelines.tokenizers.part_tables import SPACE, part_tables
from pipelines.tokenizers.sentencepiece_model import CuttableModel

# Odd, so that it has an inverse modulo 2 ** 64 (a prime of xxHash).
_BASE = 0x9E3779B185EBCA87
_CODE_BITS = 21
# By the length of a part, the bits of the code points that are its own.
_PACKED = np.array([(1 << _CODE_BITS * count) - 1 for count in range(4)], np.uint64)
_HASHED = np.uint64(1 << 63)

_Array = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parts:
    """Texts, cut."""

    codes: _Array
    """Code points."""
    starts: _Array
    """Where each part starts in `codes`, and the end of the last."""
    keys: Keys
    """What finds parts again: up to three code points of 21 bits, or the highest bit and a hash."""
    hashed: _Array
    """The indices of the parts that have a hash: different parts may have the same."""
    texts: _Array
    """The index of the first part of each text, and the number of parts."""


class PartCutter:
    """Cuts the texts of a model."""

    def __init__(self, model: CuttableModel) -> None:
        """Prepare the tables."""
        self._strips = model.strips
        self._powers, self._inverses = _powers(1 << 16)
        self.tables = part_tables(model)

    def read(self, texts: Sequence[str]) -> tuple[_Array, _Array]:
        """Return how the code points of all texts read, and where each text starts, and the end.

        In front of each text stands a space, as the library puts it; an empty one gets it only
        where spaces are removed, and there another one follows the last text.

        Raises:
            UnicodeEncodeError: a text has half of a surrogate pair.
        """
        if self._strips:
            joined = " ".join(["", *texts, ""])
        else:
            joined = "".join([f" {text}" for text in texts if text])
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.concatenate(([0], np.cumsum(lengths + (self._strips | (lengths > 0)))))
        points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        return self.tables.reading.take(points), starts

    def cut(self, codes: _Array, text_starts: _Array) -> Parts:
        """Return the parts of what `read` returns, none of which is odd."""
        if self._strips:
            codes, text_starts = _stripped(codes, text_starts)
        pairs = self.tables.left.take(codes[:-1]) ^ self.tables.right.take(codes[1:])
        cut = np.ones(len(codes) + 1, np.bool_)
        cut[1 : len(codes)] = ~self.tables.joined.take(pairs)
        cut[text_starts] = True
        starts = np.flatnonzero(cut)
        keys, hashed = self._keys(codes, starts)
        texts = np.searchsorted(starts, text_starts)
        return Parts(codes=codes, starts=starts, keys=keys, hashed=hashed, texts=texts)

    def _keys(self, codes: _Array, starts: _Array) -> tuple[Keys, _Array]:
        """Return the parts' keys, and which of them are hashes.

        A hash is the sum of code * base ** place, places counted from the part's start.
        """
        count, lengths = len(codes), np.diff(starts)
        packed = codes.copy()
        packed[:-1] |= codes[1:] << _CODE_BITS
        packed[:-2] |= codes[2:] << 2 * _CODE_BITS
        keys = packed.take(starts[:-1]).view(np.uint64)
        keys &= _PACKED.take(lengths, mode="clip")
        hashed = np.flatnonzero(lengths >= len(_PACKED))
        if count > len(self._powers):
            self._powers, self._inverses = _powers(count)
        sums = np.zeros(count + 1, np.uint64)
        np.cumsum(codes.view(np.uint64) * self._powers[:count], out=sums[1:])
        first = starts.take(hashed)
        hashes = sums.take(starts[1:].take(hashed)) - sums.take(first)
        keys[hashed] = hashes * self._inverses.take(first) | _HASHED
        return keys, hashed


def _stripped(codes: _Array, starts: _Array) -> tuple[_Array, _Array]:
    """Return the texts without each space that another one follows, and without the last.

    As a space stands in front of each text, this takes those at their ends too, and all of a text
    that has nothing else.
    """
    space = codes == SPACE
    extra = np.flatnonzero(space[:-1] & space[1:])
    kept = np.ones(len(codes), np.bool_)
    kept[extra] = False
    kept[-1] = False
    return codes[kept], starts - np.searchsorted(extra, starts)


def _powers(count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the powers of the base from 0 on, modulo 2 ** 64, and their inverses."""
    steps = np.ones((2, count), np.uint64)
    steps[0, 1:] = _BASE
    steps[1, 1:] = pow(_BASE, -1, 1 << 64)
    powers, inverses = np.multiply.accumulate(steps, axis=1)
    return powers, inverses
