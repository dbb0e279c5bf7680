"""Templates of tasks: texts with the fields of an item and a blank, split into strings to encode.

    {text:cut} In short, it was [MASK].

{name} is a field, {outer.inner} a nested field, and {{ and }} are braces. The blank is [MASK],
[sMASK] or [gMASK]; white space before it is dropped. Marks within the text of a field are plain
text. Filters follow a colon, separated by commas:

    cut      if a row is too long, cut tokens from the end of the last such field
    even     the same, but cut from the longest such field, or from the last of equals
    plain    replace curly quotes and en dashes by ASCII characters
    open     remove the final punctuation
    strip    remove white space at both ends

A text is encoded string by string. A field that may be cut is a separate string, with the white
space before it; {|} also ends a string, and {|:cut} ends a string that may be cut. The rules follow
THUDM/GLM (commit 4f61ed7, tasks/superglue/pvp). If cutting is not enough, the reference fails with
an exception, while this code reports an error.
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
    """Return a text with ASCII characters instead of curly quotes and en dashes."""
    return text.translate(_PLAIN)


def open_ended(text: str) -> str:
    """Return a text without any punctuation at its end."""
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
    """CUT, EVEN, or "" if the part may not be cut."""
    mask: str = ""
    """The role of a blank: mask, smask or gmask."""

    def filled(self, item: Item) -> str:
        """Return the text of the part.

        Raises:
            UserError: the item lacks the field, or its value is not a text.
        """
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
        ValueError: the template is not valid; the message says why.
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
    """Return the text of a template that has no blank, with the fields of an item.

    Raises:
        UserError: the item lacks a field, or its value is not a text.
    """
    return "".join(part.filled(item) for part in parse(template))


def strings_of(template: str, item: Item) -> Iterator[TemplatePart]:
    """Yield the strings and blanks of a template with the fields of an item.

    Raises:
        UserError: the item lacks a field, or its value is not a text.
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
    """Remove tokens from the ends of strings that may be cut; return whether that was enough.

    Args:
        ids: the ids of each string, which are shortened in place.
        cuts: CUT, EVEN or "" for each string.
        excess: the number of tokens to remove.
    """
    cuttable = [(one, cut) for one, cut in zip(ids, cuts, strict=True) if cut]
    for _ in range(excess):
        left = [(one, len(one) if cut == EVEN else 1) for one, cut in reversed(cuttable) if one]
        if not left:
            return False
        max(left, key=lambda pair: pair[1])[0].pop()
    return True
