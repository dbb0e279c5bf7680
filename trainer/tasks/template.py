"""Templates of tasks: texts with fields of an item and a blank, as strings of tokens.

    {text:cut} In short, it was [MASK].

{name} is a field, {outer.inner} one below another, {{ and }} are braces. The blank is [MASK],
[sMASK] or [gMASK]; white space before it is dropped. The fields' texts are only texts, whatever
they hold. Behind a colon, joined by commas, stands what is done with a field:

    cut      where a row is too long, tokens are taken from its end, of several such from the last
    even     likewise, of several such from the longest, the last of equals
    plain    curly quotes and en dashes become those of ASCII
    open     the punctuation at its end is left out
    strip    the white space around it is left out

A text is encoded string by string. A part that may be cut is its own string, with the white space
before it; {|} ends a string as well, and {|:cut} one that may be cut. The rules are those of
THUDM/GLM (commit 4f61ed7, tasks/superglue/pvp). Where cutting is not enough, the reference breaks
down, and here is an error.
"""

import re
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from trainer.tasks.items import Item

CUT, EVEN = "cut", "even"
_SEAM = "|"
_BLANK = re.compile(r"(\[(?:MASK|sMASK|gMASK)\])")
_PLAIN = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-"})


def plain(text: str) -> str:
    """Return a text with curly quotes and en dashes as ASCII has them."""
    return text.translate(_PLAIN)


def open_ended(text: str) -> str:
    """Return a text without the punctuation at its end, however much there is."""
    return text.rstrip(string.punctuation)


_FILTERS: dict[str, Callable[[str], str]] = {
    "plain": plain,
    "open": open_ended,
    "strip": str.strip,
}


@dataclass(frozen=True)
class TemplatePart:
    """A part of a template: a text, a field, the blank, or the end of a string."""

    text: str = ""
    field: str = ""
    filters: tuple[str, ...] = ()
    cut: str = ""
    """CUT, EVEN, or nothing."""
    mask: str = ""
    """mask, smask or gmask."""

    def filled(self, item: Item) -> str:
        """Return the text; UserError where the item lacks the field, or it is no text."""
        if not self.field:
            return self.text
        text = item.shown(self.field)
        for name in self.filters:
            text = _FILTERS[name](text)
        return text


@cache
def parse(template: str) -> tuple[TemplatePart, ...]:
    """Return the parts of a template.

    Raises:
        ValueError: it is not well formed; says how.
    """
    parts: list[TemplatePart] = []
    for literal, name, spec, conversion in string.Formatter().parse(template):
        for text in _BLANK.split(literal):
            if _BLANK.fullmatch(text):
                parts.append(TemplatePart(mask=text.strip("[]").lower()))
            elif text:
                parts.append(TemplatePart(text=text))
        if name is not None:
            names = spec.split(",") if spec else []
            cuts = [one for one in names if one in (CUT, EVEN)]
            filters = tuple(one for one in names if one in _FILTERS)
            if not name or conversion or len(cuts) > 1 or len(cuts) + len(filters) < len(names):
                raise ValueError(f"a field is {{name}} or {{name:{CUT}}}, not as in {template!r}")
            parts.append(TemplatePart(field=name, filters=filters, cut="".join(cuts)))
    return tuple(parts)


def masks_of(template: str) -> list[str]:
    """Return the kinds of the blanks of a template."""
    return [part.mask for part in parse(template) if part.mask]


def text_of(template: str, item: Item) -> str:
    """Return a template without a blank, filled in.

    Raises:
        UserError: the item lacks a field, or it is no text.
    """
    return "".join(part.filled(item) for part in parse(template))


def strings_of(template: str, item: Item) -> Iterator[TemplatePart]:
    """Yield a template filled in, as strings and blanks.

    Raises:
        UserError: the item lacks a field, or it is no text.
    """
    text = ""
    for part in parse(template):
        if part.mask:
            yield TemplatePart(text.rstrip())
            yield part
            text = ""
        elif part.field == _SEAM:
            yield TemplatePart(text, cut=part.cut)
            text = ""
        elif part.cut:
            kept = text.rstrip()
            yield TemplatePart(kept)
            yield TemplatePart(text[len(kept) :] + part.filled(item), cut=part.cut)
            text = ""
        else:
            text += part.filled(item)
    if text:
        yield TemplatePart(text)


def shorten(ids: Sequence[list[int]], cuts: Sequence[str], excess: int) -> bool:
    """Take tokens from the ends of strings that may be cut; return whether that was enough.

    Args:
        ids: of each string; changed.
        cuts: CUT, EVEN or nothing for each.
        excess: how many to take.
    """
    cuttable = [(one, cut) for one, cut in zip(ids, cuts, strict=True) if cut]
    for _ in range(excess):
        left = [(one, len(one) if cut == EVEN else 1) for one, cut in reversed(cuttable) if one]
        if not left:
            return False
        max(left, key=lambda pair: pair[1])[0].pop()
    return True
