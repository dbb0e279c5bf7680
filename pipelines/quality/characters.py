"""A table of all code points with the eight kinds of characters that rules distinguish."""

from functools import cache

import numpy as np
import numpy.typing as npt


def _characters(ranges: str) -> frozenset[str]:
    """Return the characters of code points and ranges in hexadecimal, such as "21 2E 61D-61F"."""
    bounds = [part.partition("-") for part in ranges.split()]
    return frozenset(
        chr(code)
        for first, _, last in bounds
        for code in range(int(first, 16), int(last or first, 16) + 1)
    )


TERMINAL = _characters(
    """
    21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E
    1735-1736 17D4-17D6 17D9-17DA 1803 1809 1944-1945 1AA8-1AAB 1B5A-1B5B 1B5E-1B5F 1B7D-1B7E
    1C3B-1C3C 1C7E-1C7F 203C-203D 2047-2049 2E2E 2E3C 2E53-2E54 3002 A4FF A60E-A60F A6F3 A6F7
    A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE52 FE56-FE57 FF01 FF0E FF1F FF61
    10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 111CD
    111DE-111DF 11238-11239 1123B-1123C 112A9 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642
    1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F
    16AF5 16B37-16B38 16B44 16E98 1BC9F 1DA88
    """
)
"""The end marks of sentences in any script: Unicode's Sentence_Terminal, as in datatrove 0.10.1
(utils/text.py, TERMINAL_PUNCTUATION)."""

PUNCTUATION = TERMINAL | _characters(
    """
    0-8 B-1F 22-2D 2F 3A-3E 40 5B-60 7B-9F AB B4 BB 2013-2014 2019 201C-201E 2026 2236 2501 25BA
    3001 3008-300D 3010-3011 FF05 FF08-FF09 FF0C FF11 FF1A-FF1B FF5E
    """
)
"""A word that consists of these characters is a symbol (datatrove 0.10.1, PUNCTUATION_SET). As in
datatrove, the full-width digit one is included."""

LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters that end a line for str.splitlines()."""

CLOSING = "\"'”’)]"
"""The characters that may follow the end mark of a sentence in C4."""

CHINESE_ENDS = "。！？…；"
"""The end marks of sentences in a Chinese text of one line."""

CHINESE_CLOSING = "”’」』）】》\"')"
"""The characters that still belong to a sentence after its end mark."""

Kinds = npt.NDArray[np.uint8]
"""The kinds of some characters, as bits."""

NUM_CODE_POINTS = 0x110000

SPACE, LETTER, SYMBOL, ENDING, BREAK, AFTER_END, CHINESE_END, CHINESE_AFTER_END = (
    1 << bit for bit in range(8)
)
"""The bits of the kinds: white space and letters as defined by Python's str; then the characters of
PUNCTUATION, TERMINAL, LINE_BREAKS, CLOSING, CHINESE_ENDS and CHINESE_CLOSING."""


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text, uint32[len(text)], including lone surrogates."""
    # numpy stores strings as code points, and converts several times as fast as Python's codecs.
    return np.array([text]).view(np.uint32)[: len(text)]


def text_of(codes: npt.NDArray[np.uint32]) -> str:
    """Return the text of code points; the last one must not be 0."""
    return str(codes.view(f"U{len(codes)}").item()) if len(codes) else ""


@cache
def kinds_of_characters() -> Kinds:
    """Return the kinds of every code point, uint8[NUM_CODE_POINTS]."""
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
