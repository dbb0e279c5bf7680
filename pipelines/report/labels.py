"""Texts in a picture: how wide they are at most, and which of them have room in a row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from unicodedata import east_asian_width

WIDTH = 320
"""Of a picture, in points."""
_FONT = 10.0
"""Size of the letters in points, as report.css has it."""
_APART = 3.0
"""Least space between two texts."""

_WIDEST, _CAPITAL, _LETTER, _NARROW = 1.12 * _FONT, 0.88 * _FONT, 0.73 * _FONT, 0.43 * _FONT


@dataclass(frozen=True, slots=True)
class Text:
    """A text in a picture."""

    text: str
    x: float
    y: float
    anchor: str = "middle"
    """Which end of the text stands at x: start, middle or end."""

    @property
    def span(self) -> tuple[float, float]:
        """Left and right end, at most."""
        full = width(self.text)
        left = self.x - full * ("start", "middle", "end").index(self.anchor) / 2
        return left, left + full


def width(text: str) -> float:
    """Return how wide a text is at most, in points.

    The bounds of its characters are those of DejaVu Sans Bold, the widest of the fonts that a
    browser takes for a page without fonts of its own.
    """
    return sum(map(_advance, text))


def _advance(character: str) -> float:
    if character in "%@mwMW" or ord(character) > 0x2FF:  # noqa: PLR2004  no Latin letter
        return _FONT if east_asian_width(character) in "WF" else _WIDEST
    if character in " .,:;'|!ijl":
        return _NARROW
    return _CAPITAL if character.isupper() or character in "<>=+~#&" else _LETTER


def inside(text: Text) -> Text:
    """Return a text, moved as far as it takes to lie within the picture."""
    left, right = text.span
    return replace(text, x=text.x + max(0.0, -left) - max(0.0, right - WIDTH))


def spaced(texts: Iterable[Text], *, first: Sequence[Text] = ()) -> list[Text]:
    """Return as many texts of a row as have room, evenly chosen, from left to right.

    Args:
        texts: From left to right.
        first: Those that are needed; no two of them meet.
    """
    fixed = [inside(text) for text in first]
    free = [text for text in map(inside, texts) if not any(_meet(text, other) for other in fixed)]
    for step in range(1, len(free) + 1):
        chosen = free[::step]
        if not any(map(_meet, chosen, chosen[1:])):
            return sorted([*fixed, *chosen], key=lambda text: text.span)
    return fixed


def _meet(text: Text, other: Text) -> bool:
    (left, right), (other_left, other_right) = text.span, other.span
    return left < other_right + _APART and other_left < right + _APART
