"""What characters are, and the words between spaces, as compiled loops."""

from functools import cache

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.compiled.lines import character_bits, every_character, matching
from pipelines.quality.punctuation import PUNCTUATION
from pipelines.quality.words import WordSpans

Codes = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]

_SPACE, _BREAK, _LETTER, _SYMBOL = 1, 2, 4, 8


@cache
def character_kinds() -> Kinds:
    """Return what each code point is to Python, uint8[0x110000], for is_space and its like."""
    # The last line ends where the characters do.
    lines = every_character().splitlines(keepends=True)[:-1]
    letters = filter(str.isalpha, matching(r"\w"))
    return character_bits(matching(r"\s"), (line[-1] for line in lines), letters, PUNCTUATION)


@kernel
def is_space(kinds: Kinds, code: np.uint32) -> bool:
    """Return what str.isspace() does of a character."""
    return bool(kinds[code] & _SPACE)


@kernel
def is_break(kinds: Kinds, code: np.uint32) -> bool:
    r"""Return whether str.splitlines() ends a line at a character; \r\n is a single end."""
    return bool(kinds[code] & _BREAK)


@kernel
def is_letter(kinds: Kinds, code: np.uint32) -> bool:
    """Return what str.isalpha() does of a character."""
    return bool(kinds[code] & _LETTER)


@kernel
def is_symbol(kinds: Kinds, code: np.uint32) -> bool:
    """Return whether a character is one of PUNCTUATION."""
    return bool(kinds[code] & _SYMBOL)


def words_at_spaces(codes: Codes) -> WordSpans:
    """Return the words of str.split() in a text of these code points."""
    most = (len(codes) + 1) // 2
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    count = _split(codes, character_kinds(), starts, ends)
    return WordSpans(codes, starts[:count], ends[:count])


@kernel
def _split(codes: Codes, kinds: Kinds, starts: Places, ends: Places) -> int:
    """Write where words begin and end, and return their number."""
    count = place = 0
    while place < len(codes):
        if is_space(kinds, codes[place]):
            place += 1
            continue
        starts[count] = place
        while place < len(codes) and not is_space(kinds, codes[place]):
            place += 1
        ends[count] = place
        count += 1
    return count
