"""The classes of characters in rules: one table of eight classes for all code points."""

from functools import cache

import numpy as np
import numpy.typing as npt

from pipelines.quality.punctuation import (
    CHINESE_CLOSING,
    CHINESE_ENDS,
    CLOSING,
    LINE_BREAKS,
    PUNCTUATION,
    TERMINAL,
)

Kinds = npt.NDArray[np.uint8]
"""Bits of the classes of some characters."""

NUM_CODE_POINTS = 0x110000

SPACE, LETTER, SYMBOL, ENDING, BREAK, AFTER_END, CHINESE_END, CHINESE_AFTER_END = (
    1 << bit for bit in range(8)
)
"""White space and letters, as Python's str has them; those of PUNCTUATION, TERMINAL, LINE_BREAKS,
CLOSING, CHINESE_ENDS and CHINESE_CLOSING."""


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text, uint32[len(text)]; lone surrogates are among them."""
    # numpy's strings are code points, and it converts several times as fast as Python's codecs.
    return np.array([text]).view(np.uint32)[: len(text)]


def text_of(codes: npt.NDArray[np.uint32]) -> str:
    """Return the text of code points, the last of which is not 0."""
    return str(codes.view(f"U{len(codes)}").item()) if len(codes) else ""


@cache
def kinds_of_characters() -> Kinds:
    """Return the classes of every code point, uint8[NUM_CODE_POINTS]."""
    every = np.arange(NUM_CODE_POINTS, dtype=np.uint32).view("U1")
    kinds = np.strings.isspace(every) * np.uint8(SPACE)
    kinds |= np.strings.isalpha(every) * np.uint8(LETTER)
    for characters, kind in (
        (PUNCTUATION, SYMBOL),
        (TERMINAL, ENDING),
        (LINE_BREAKS, BREAK),
        (CLOSING, AFTER_END),
        (CHINESE_ENDS, CHINESE_END),
        (CHINESE_CLOSING, CHINESE_AFTER_END),
    ):
        kinds[code_points("".join(characters))] |= kind
    return kinds
