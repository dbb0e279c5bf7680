"""Texts, cut into parts that can be encoded separately.

BPE only ever joins neighbours into pieces. So where two characters stand side by side in no piece,
nothing is joined across them, and the ids of a text are those of its parts, one after another:

    text     The cat  sat。好的，好的
    read     _The_cat_sat.好的,好的        a space in front, and one for each run of white space
    parts    _The|_cat|_sat|.|好的|,|好的

The library normalises a text first (google/sentencepiece, src/normalizer.cc), and two things it
does reach beyond a part. It removes white space at the ends and in runs: that is done here. And it
replaces some characters together with the next one: a character that follows another in such a rule
reads as `ODD`, and a text with an odd character cannot be cut.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.part_cache import Keys
from pipelines.tokenizers.sentencepiece_model import SHOWN_SPACE, CuttableModel

SPACE = 0x20
"""How white space reads."""
ODD = -1
"""How a code point reads if only the library can encode a text that holds it."""

_SHOWN = ord(SHOWN_SPACE)
_CODES = 0x110000
_HASH_BITS = 20
# Odd numbers that spread code points (primes of xxHash).
_LEFT, _RIGHT = 0x85EBCA77, 0xC2B2AE3D

# Odd, so that it has an inverse modulo 2 ** 64 (a prime of xxHash).
_BASE = 0x9E3779B185EBCA87
_CODE_BITS = 21
# Indexed by the length of a part: the bits of the code points that are its own.
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
    """Identify parts: up to three code points of 21 bits each, or the highest bit and a hash."""
    hashed: _Array
    """The indices of the parts whose key is a hash: different parts may share one."""
    texts: _Array
    """The index of the first part of each text, and the number of parts."""


class PartCutter:
    """Cuts texts for one model."""

    def __init__(self, model: CuttableModel) -> None:
        """Prepare the tables."""
        self._strips = model.strips
        self._powers, self._inverses = _powers(1 << 16)
        self.tables = part_tables(model)

    def read(self, texts: Sequence[str]) -> tuple[_Array, _Array]:
        """Return how the code points of all texts read, and where each text starts, and the end.

        Each text is preceded by a space, as in the library. An empty one only gets it if spaces are
        removed; in that case one more space follows the last text.

        Raises:
            UnicodeEncodeError: a text holds half of a surrogate pair.
        """
        if self._strips:
            joined = " ".join(["", *texts, ""])
        else:
            joined = "".join([f" {text}" for text in texts if text])
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        spaced = lengths + 1 if self._strips else np.where(lengths > 0, lengths + 1, 0)
        starts = np.concatenate(([0], np.cumsum(spaced)))
        points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        return self.tables.reading.take(points), starts

    def cut(self, codes: _Array, text_starts: _Array) -> Parts:
        """Return the parts of what `read` returned; none of its code points may be odd."""
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
        """Return the parts' keys, and the indices of those that are hashes.

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
    """Return the texts without the last space and each space that another one follows.

    As a space precedes each text, this also removes the spaces at the ends of texts, and all of a
    text that holds nothing else.
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartTables:
    """What each code point is to a model: arrays indexed by code point."""

    reading: _Array
    """The code point that gives the same ids; a space for white space."""
    left: npt.NDArray[np.int32]
    """A hash of the last character it is normalised to, for the left of a pair."""
    right: npt.NDArray[np.int32]
    """A hash of the first character it is normalised to, for the right of a pair."""
    joined: npt.NDArray[np.bool_]
    """Whether two code points may stand side by side in a piece, indexed by left XOR right.

    Also true for a few that may not but share the hash of two that may: that costs a cut at most.
    """
    ids: _Array
    """The id of the piece that it reads as; -1 if there is none, or it may not join others."""


def part_tables(model: CuttableModel) -> PartTables:
    """Return the tables of a model; they take 26 MB."""
    rules = model.character_rules
    single = {**rules.single, **{ord(symbol): symbol for symbol in model.symbols}}
    reading, first, last = _readings(model, single)
    # The library's table of rules ends replacements with NUL.
    reading[[0, ord(model.separator), *rules.joining]] = ODD
    lefts, rights = _neighbours(model)
    joined = np.zeros(1 << _HASH_BITS, np.bool_)
    joined[_mixed(lefts, _LEFT) ^ _mixed(rights, _RIGHT)] = True
    return PartTables(
        reading=reading,
        left=_mixed(last, _LEFT),
        right=_mixed(first, _RIGHT),
        joined=joined,
        ids=_ids(model, single),
    )


def _neighbours(model: CuttableModel) -> tuple[_Array, _Array]:
    """Return the code points that stand side by side in pieces: left ones and right ones."""
    joined = model.separator.join(piece.text for piece in model.pieces).encode("utf-32-le")
    codes = np.frombuffer(joined, np.uint32).astype(np.int64)
    apart = codes == ord(model.separator)
    inside = ~(apart[:-1] | apart[1:])
    return codes[:-1][inside], codes[1:][inside]


def _ids(model: CuttableModel, single: Mapping[int, str]) -> _Array:
    ids = np.full(_CODES, -1)
    for piece in model.pieces:
        if len(piece.text) == 1:
            ids[ord(piece.text)] = piece.id
    ids[SPACE] = ids[_SHOWN]
    ids[[code for code in single if code != SPACE]] = -1
    return ids


def _readings(model: CuttableModel, single: Mapping[int, str]) -> tuple[_Array, _Array, _Array]:
    """Return how code points read, and the first and the last character of their replacements."""
    joining = model.character_rules.joining
    reading, first, last = (np.arange(_CODES) for _ in range(3))
    if model.strips:
        # At the end of a text it would be removed like a space.
        reading[_SHOWN] = ODD
    for code, text in single.items():
        if text == " ":
            reading[code] = SPACE
        elif not text or (model.strips and (" " in text or SHOWN_SPACE in text)):
            reading[code] = ODD
        elif len(text) == 1 and ord(text) not in single and ord(text) not in joining:
            reading[code] = ord(text)
        else:
            first[code], last[code] = ord(text[0]), ord(text[-1])
    first[first == SPACE] = _SHOWN
    last[last == SPACE] = _SHOWN
    return reading, first, last


def _mixed(codes: _Array, factor: int) -> npt.NDArray[np.int32]:
    return (codes * factor % (1 << 32) >> (32 - _HASH_BITS)).astype(np.int32)
