"""What characters are, and the words between spaces, as compiled loops."""

from functools import cache

import numpy as np

from pipelines.compiled import kernel_in_place
from pipelines.quality.compiled.lines import (
    Codes,
    Kinds,
    Places,
    character_bits,
    every_character,
    matching,
)
from pipelines.quality.punctuation import PUNCTUATION
from pipelines.quality.spans import WordSpans

_SPACE, _LETTER, _SYMBOL, _MARK = 1, 2, 4, 8


@cache
def character_kinds() -> Kinds:
    """Return what each code point is to Python, uint8[0x110000], for is_space and its like."""
    # The last line ends where the characters do.
    breaks = "".join(line[-1] for line in every_character().splitlines(keepends=True)[:-1])
    letters = filter(str.isalpha, matching(r"\w"))
    return character_bits(matching(r"\s"), letters, PUNCTUATION, f"{breaks}#.…")


@kernel_in_place
def is_space(kinds: Kinds, code: np.uint32) -> bool:
    """Return what str.isspace() does of a character."""
    return bool(kinds[code] & _SPACE)


@kernel_in_place
def is_letter(kinds: Kinds, code: np.uint32) -> bool:
    """Return what str.isalpha() does of a character."""
    return bool(kinds[code] & _LETTER)


@kernel_in_place
def is_symbol(kinds: Kinds, code: np.uint32) -> bool:
    """Return whether a character is one of PUNCTUATION."""
    return bool(kinds[code] & _SYMBOL)


@kernel_in_place
def is_mark(kinds: Kinds, code: np.uint32) -> bool:
    """Return whether a character ends a line, or is a hash sign, a full stop or an ellipsis."""
    return bool(kinds[code] & _MARK)


def words_at_spaces(codes: Codes) -> WordSpans:
    """Return the words of str.split() in a text of these code points."""
    most = len(codes) // 2 + 2
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    count = _split(codes, character_kinds(), starts, ends)
    return WordSpans(codes, starts[:count], ends[:count])


@kernel_in_place
def _split(codes: Codes, kinds: Kinds, starts: Places, ends: Places) -> int:
    """Write where words begin and end, and return their number.

    Every place is written as the next beginning and the next end, and stays if it is one: nothing
    depends on guessing how long words are, which is what takes a processor's time.
    """
    num_started = num_ended = 0
    was_space = True
    for place in range(len(codes)):
        space = is_space(kinds, codes[place])
        starts[num_started], ends[num_ended] = place, place
        num_started += was_space & (not space)
        num_ended += space & (not was_space)
        was_space = space
    ends[num_ended] = len(codes)
    return num_started
