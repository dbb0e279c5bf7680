"""Phone and Chinese identity numbers found in a text, by their form alone.

The forms are conservative: what might as well be a date, an amount, a book number or part of a
longer number is not found. Digits are ASCII digits.
"""

import datetime
import re
from collections.abc import Iterator

import numpy as np

FICTION = "555-0100"
"""A number that the North American plan reserves for fiction; what holds it is nobody's number."""

# Every number that is masked has ten digits or more with at most two separators between them, and
# four of them in a row unless it begins with a plus sign. Where such runs are is found in bytes of
# three values, several times faster than in characters.
_WIDE = "（）".encode()
_SHAPE = bytes(
    ord(
        "d" if chr(byte) in "0123456789" else "s" if byte in b" -()." else "w" if byte in _WIDE
        else " "
    )
    for byte in range(256)
)  # fmt: skip
_RUN = re.compile(rb"d(?:(?:s{0,2}+|s?w{3}s?)d){9,}")
_FOUR = b"dddd"
_MOST_GAP = len(" ）-".encode()) + 1
_MARGIN = 12
"""Characters before a run that a number may begin with, and behind it that speak against it."""


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of digits in the text."""
    raw = text.encode("utf-8", "replace")
    shape = raw.translate(_SHAPE)
    if _FOUR not in shape and "+" not in text:
        return
    here, seen = 0, 0
    for match in _RUN.finditer(shape):
        start, end = match.span()
        if _may_hold(raw, start, match[0]):
            first = here + len(raw[seen:start].decode())
            here, seen = first + len(raw[start:end].decode()), end
            yield first, here


def _long_runs(characters: np.ndarray) -> np.ndarray:
    """Return start and end (int64[n, 2]) of ten digits or more with small gaps, in UTF-8 bytes.

    Digits in a row behind a letter are left out: names of files and hexadecimal numbers.
    """
    at = np.flatnonzero(characters - np.uint8(ord("0")) < np.uint8(10))
    cuts = np.flatnonzero(np.diff(at) > _MOST_GAP)
    firsts, lasts = np.append(0, cuts + 1), np.append(cuts, len(at) - 1)
    many = lasts - firsts >= 9  # noqa: PLR2004 - ten digits
    starts, ends, steps = at[firsts[many]], at[lasts[many]] + 1, (lasts - firsts)[many] + 1
    before = characters[np.maximum(starts - 1, 0)] | 0x20
    named = (ends - starts == steps) & (before >= ord("a")) & (before <= ord("z"))
    runs: np.ndarray = np.stack([starts, ends], axis=1)[~named]
    return runs


def _may_hold(raw: bytes, start: int, shape: bytes) -> bool:
    """Return whether a run may hold a number, by its shape and the byte before it."""
    before = raw[start - 1 : start]
    if len(shape) == shape.count(b"d") and (before.isalpha() or before == b"_"):
        return False
    return _FOUR in shape or before == b"+"


def find_numbers(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind ("id" or "phone") of each number of a person, in order."""
    done = 0
    for start, end in _runs(text):
        at = max(done, start - _MARGIN)
        while match := _NUMBER.search(text, at, end + _MARGIN):
            kind = _kind(match) if match.end() <= end + len("X") else None
            at = match.end() if kind else match.start() + 1
            if kind:
                yield match.start(), match.end(), kind
                done = at


def places_of_numbers(raw: bytes) -> list[int]:
    """Return byte offsets near which find_numbers() may find something; it finds nothing elsewhere.

    Args:
        raw: UTF-8; several texts with line breaks between them are all right.
    """
    places = []
    for start, end in _long_runs(np.frombuffer(raw, np.uint8)).tolist():
        shape = raw[start:end].translate(_SHAPE)
        runs = [(start + run.start(), run[0]) for run in _RUN.finditer(shape)]
        places += [at for at, run in runs if _may_hold(raw, at, run)]
    return places


# A number ends where no digit, letter or decimal goes on, nor a unit that makes it an amount.
_BEFORE = r"(?<![=&#%$€£¥￥@\\])(?<![0-9][.])(?:(?<!/)|(?<=[0-9]{7}/))"
_AFTER = r"(?![0-9A-Za-z_%‰@]|[.-][0-9]|\s?(?:元|圆|美元|欧元|万|亿|字节|人民币))"
_ALONE = rf"{_BEFORE}(?<![0-9][- ])"

_CHINA = r"(?:(?:\+|00)86[- ]?)"
_MOBILE = rf"""
    {_ALONE} {_CHINA} 1[3-9][0-9]{{9}} {_AFTER}
    | {_BEFORE} (?<![0-9]-) 1[3-9][0-9]{{9}} {_AFTER}
    | {_ALONE} {_CHINA}? 1[3-9][0-9] (?P<mobile>[- ]) [0-9]{{4}} (?P=mobile) [0-9]{{4}} {_AFTER}
"""
"""Chinese mobile numbers: 1, 3 to 9, nine digits, in one piece or as 3-4-4."""

_AREA = r"(?:10|2[0-9]|[3-9][0-9]{2})"
_LANDLINE = rf"""
    {_ALONE}
    (?: {_CHINA} (?: 0?{_AREA} | \(0?{_AREA}\) ) [- ]?
      | [(（] 0{_AREA} [)）] [- ]? | 0{_AREA} [- ] )
    [2-8][0-9]{{2,3}} [- ]? [0-9]{{4}} (?:-[0-9]{{1,5}})? {_AFTER}
"""
"""Chinese landlines: area code (010, 02x, 03xx to 09xx), seven or eight digits, extension."""

_CODE = r"(?![2-9]00)[2-9][0-9]{2}"
_NANP = rf"""
    {_ALONE} (?: \+? 1 [-.\ ]? )?
    (?: \({_CODE}\) [ ]? [2-9][0-9]{{2}} [-.\ ] | {_CODE} (?P<nanp>[-.]) [2-9][0-9]{{2}} (?P=nanp) )
    [0-9]{{4}} {_AFTER}
"""
"""North American numbers with parentheses, dashes or dots; spaces alone may part an amount.

Codes that end in 00 are no person's: 800 in America and China, 400 in China.
"""

_INTERNATIONAL = rf"""
    (?<![=&#%$€£¥￥@/\\)+.-]) \+ [1-9][0-9]{{0,2}}
    (?: [- ]? \([0-9]{{1,4}}\) )? (?: [- ]? [0-9]{{1,5}}+ ){{2,7}}+ {_AFTER}
"""
"""A plus sign, a country code, groups of digits: 9 to 15 digits in all (ITU-T E.164 allows 15)."""

_REGION = r"(?: 1[1-5] | 2[1-3] | 3[1-7] | 4[1-6] | 5[0-4] | 6[1-5] | 71 | 8[1-3] ) [0-9]{4}"
"""Codes of GB/T 2260; 81 to 83 are given to residents from Hong Kong, Macao and Taiwan."""
_IDENTITY = rf"""
    (?<![.]) {_REGION}
    (?: (?P<born>[0-9]{{8}}) [0-9]{{3}} [0-9Xx] | (?P<old>[0-9]{{6}}) [0-9]{{3}} )
    (?! [0-9A-Za-z_] | [.][0-9] )
"""

_NUMBER = re.compile(
    rf"""
    (?<![0-9A-Za-z_]) (?= [0-9+(（] )  # fails at once where nothing can begin
    (?: (?P<id> {_IDENTITY} ) | {_MOBILE} | {_LANDLINE} | {_NANP} | (?P<world> {_INTERNATIONAL} ) )
    """,
    re.VERBOSE,
)


def _kind(match: re.Match[str]) -> str | None:
    """Return the kind of a number, None for one that only looks like it."""
    if match["id"]:
        return "id" if _is_identity(match) else None
    if FICTION in match[0]:
        return None
    digits = sum("0" <= character <= "9" for character in match[0])
    return "phone" if not match["world"] or 9 <= digits <= 15 else None  # noqa: PLR2004 - E.164


_OLD_WORD, _OLD_WINDOW = "身份证", 20
_WEIGHTS = tuple(2**power % 11 for power in range(17, 0, -1))


def _is_identity(match: re.Match[str]) -> bool:
    """Accept 18 digits whose date and check character hold, 15 only where the text names them.

    The check character is that of ISO 7064 MOD 11-2 (GB 11643-1999). The older form has none: one
    in eighty random numbers of 15 digits would pass for it.
    """
    if match["old"]:
        near = match.string[max(0, match.start() - _OLD_WINDOW) : match.start()]
        return _OLD_WORD in near and _is_date("19" + match["old"])
    total = sum(int(digit) * weight for digit, weight in zip(match[0], _WEIGHTS, strict=False))
    return _is_date(match["born"]) and "10X98765432"[total % 11] == match[0][-1].upper()


def _is_date(digits: str) -> bool:
    try:
        date = datetime.date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return 1880 <= date.year < 2100  # noqa: PLR2004 - in which holders of such numbers are born
