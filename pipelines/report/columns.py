"""Formats tables of text for a terminal."""

import unicodedata
from collections.abc import Iterator, Sequence


def width(text: str) -> int:
    """Return the number of columns of a text in a terminal: two per East Asian wide character."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def cut(text: str, room: int) -> str:
    """Return a text cut to at most `room` columns, with an ellipsis if it was cut."""
    if width(text) <= room:
        return text
    taken = 1
    for index, character in enumerate(text):
        taken += width(character)
        if taken > room:
            return f"{text[:index]}…"
    return text


def table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> Iterator[str]:
    """Yield rows as lines, with the columns in `left` aligned left and the rest aligned right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for index, (cell, room) in enumerate(zip(row, widths, strict=True)):
            blanks = " " * (room - width(cell))
            cells.append(cell + blanks if index in left else blanks + cell)
        yield "  ".join(cells).rstrip()
