"""What each code point is to a SentencePiece model, and which may stand side by side in a piece."""

import dataclasses

import numpy as np
import numpy.typing as npt

from pipelines.tokenizers.sentencepiece_model import SHOWN_SPACE, CuttableModel

SPACE = 0x20
"""How white space reads."""
ODD = -1
"""How a code point reads whose text only the library can encode."""

_SHOWN = ord(SHOWN_SPACE)
_CODES = 0x110000
_PAIR_BITS = 22
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

    True for a few that may not, which costs a cut and nothing else.
    """


def part_tables(model: CuttableModel, *, separator: str) -> PartTables:
    """Return the tables of a model; they take 26 MB."""
    reading, first, last = _readings(model)
    # NUL ends what is replaced in the library's table of rules.
    reading[[0, ord(separator), *model.rules.joining]] = ODD
    lefts, rights = _pairs(model, separator)
    joined = np.zeros(1 << _PAIR_BITS, np.bool_)
    joined[_mixed(lefts, _LEFT) ^ _mixed(rights, _RIGHT)] = True
    left, right = _mixed(last, _LEFT), _mixed(first, _RIGHT)
    return PartTables(reading=reading, left=left, right=right, joined=joined)


def _readings(model: CuttableModel) -> tuple[_Array, _Array, _Array]:
    """Return how code points read, and the first and the last character of what replaces them."""
    reading, first, last = (np.arange(_CODES) for _ in range(3))
    single = {**model.rules.single, **{ord(symbol): symbol for symbol in model.symbols}}
    if model.strips:
        # At the end of a text it would be removed like a space.
        single.setdefault(_SHOWN, "")
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
    return (codes * factor % (1 << 32) >> (32 - _PAIR_BITS)).astype(np.int32)


def _pairs(model: CuttableModel, separator: str) -> tuple[_Array, _Array]:
    """Return the code points that stand side by side in pieces, the left ones and the right ones."""
    joined = separator.join(model.pieces).encode("utf-32-le")
    codes = np.frombuffer(joined, np.uint32).astype(np.int64)
    apart = codes == ord(separator)
    inside = ~(apart[:-1] | apart[1:])
    return codes[:-1][inside], codes[1:][inside]
