"""Templates of tasks of one's own: texts with fields of an item and a blank.

    {text:cut} In short, it was [MASK].

{name} is a field, {outer.inner} one below another; {name:cut} may be cut where a row is too long;
{{ and }} are braces. The blank is [MASK], [sMASK] or [gMASK]; white space before it is dropped. The
fields' texts are only texts, whatever they hold.
"""

import re
import string
from dataclasses import dataclass

from trainer.tasks.cloze import Pattern, Piece
from trainer.tasks.items import Item

_BLANK = re.compile(r"(\[(?:MASK|sMASK|gMASK)\])")
_CUT = "cut"


@dataclass(frozen=True)
class Part:
    """A part of a template: a text, a field or the blank."""

    text: str = ""
    field: str = ""
    may_shrink: bool = False
    mask: str = ""


def parse(template: str) -> tuple[Part, ...]:
    """Return the parts of a template.

    Raises:
        ValueError: it is not well formed; says how.
    """
    parts: list[Part] = []
    for literal, name, spec, conversion in string.Formatter().parse(template):
        for text in _BLANK.split(literal):
            if _BLANK.fullmatch(text):
                parts.append(Part(mask=text.strip("[]").lower()))
            elif text:
                parts.append(Part(text=text))
        if name is None:
            continue
        if not name or conversion or spec not in ("", _CUT):
            raise ValueError(f"a field is {{name}} or {{name:{_CUT}}}, not as in {template!r}")
        parts.append(Part(field=name, may_shrink=spec == _CUT))
    return tuple(parts)


def blanks(parts: tuple[Part, ...]) -> int:
    """Return how many blanks a template has."""
    return sum(bool(part.mask) for part in parts)


def plain_text(parts: tuple[Part, ...], item: Item) -> str:
    """Return a template without a blank, filled in.

    Raises:
        UserError: the item lacks a field, or it is no text.
    """
    return "".join(part.text or field_text(part.field, item) for part in parts)


def pattern(parts: tuple[Part, ...], item: Item) -> Pattern:
    """Return a template with an item's fields filled in.

    What may be cut is encoded by itself, with the white space before it; all else in one.

    Raises:
        UserError: the item lacks a field, or it is no text.
    """
    pieces: list[Piece] = []
    text = ""
    for part in parts:
        if part.mask:
            pieces += [Piece(text.rstrip()), Piece("", mask=part.mask)]
            text = ""
        elif part.may_shrink:
            kept = text.rstrip()
            shrinking = text[len(kept) :] + field_text(part.field, item)
            pieces += [Piece(kept), Piece(shrinking, may_shrink=True)]
            text = ""
        else:
            text += part.text or field_text(part.field, item)
    return Pattern((*pieces, Piece(text)) if text else tuple(pieces))


def field_text(name: str, item: Item) -> str:
    """Return a field as a text; UserError where it is none."""
    keys = (name,) if item.has(name) else tuple(name.split("."))
    value = item.value(*keys)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return item.text(*keys)
