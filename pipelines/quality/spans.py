"""Texts as arrays of code points, and words as ranges of them: what compiled loops work on."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class WordSpans(NamedTuple):
    """Words as ranges of an array of code points, for compiled loops."""

    codes: npt.NDArray[np.uint32]
    """Code points: of the whole text, or of its words back to back."""
    starts: npt.NDArray[np.int64]
    """int64[n]: where each word begins in `codes`."""
    ends: npt.NDArray[np.int64]
    """int64[n]: where it ends."""

    def of(self, text: str) -> list[str]:
        """Return the words, of the text whose code points these are."""
        pairs = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [text[start:end] for start, end in pairs]


Cut = Callable[[npt.NDArray[np.uint32]], WordSpans]
"""From the code points of a text to its words."""


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text, uint32[len(text)]; lone surrogates are among them."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
