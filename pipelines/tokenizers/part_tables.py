"""What each code point is to a SentencePiece model, and which may stand side by side in a piece."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.sentencepiece_model import SHOWN_SPACE, CuttableModel

SPACE = 0x20
"""How white space reads."""
ODD = -1
"""How a code point reads whose text only the library can encode."""

_SHOWN = ord(SHOWN_SPACE)
_CODES = 0x110000
_HASH_BITS = 20
# Odd numbers that spread code points (primes of xxHash).
_LEFT, _RIGHT = 0x85EBCA77, 0xC2B2AE3D

_Array = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartTables:
    """Tables by code point."""

    reading: _Array
    """The code point that gives the same ids; a space for white space."""
    left: npt.NDArray[np.int32]
    """A hash of what it ends with, for a place on the left of another one."""
    right: npt.NDArray[np.int32]
    """A hash of what it begins with, for a place on the right."""
    joined: npt.NDArray[np.bool_]
    """Whether the two may stand side by side in a piece, by left XOR right.

    True also for a few that may not but have the hash of two that may, which costs a cut at most.
    """
    ids: _Array
    """The id of what reads so, -1 where that is not one piece or may not be joined to others."""


def part_tables(model: CuttableModel) -> PartTables:
    """Return the tables of a model; they take 26 MB."""
    single = {**model.rules.single, **{ord(symbol): symbol for symbol in model.symbols}}
    reading, first, last = _readings(model, single)
    # NUL ends what is replaced in the library's table of rules.
    reading[[0, ord(model.separator), *model.rules.joining]] = ODD
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
    """Return how code points read, and the first and the last character of what replaces them."""
    reading, first, last = (np.arange(_CODES) for _ in range(3))
    if model.strips:
        # At the end of a text it would be removed like a space.
        reading[_SHOWN] = ODD
    for code, text in single.items():
        if text == " ":
            reading[code] = SPACE
        elif not text or (model.strips and (" " in text or SHOWN_SPACE in text)):
            reading[code] = ODD
        elif len(text) == 1 and ord(text) not in single and ord(text) not in model.rules.joining:
            reading[code] = ord(text)
        else:
            first[code], last[code] = ord(text[0]), ord(text[-1])
    first[first == SPACE] = _SHOWN
    last[last == SPACE] = _SHOWN
    return reading, first, last


def _mixed(codes: _Array, factor: int) -> npt.NDArray[np.int32]:
    return (codes * factor % (1 << 32) >> (32 - _HASH_BITS)).astype(np.int32)
