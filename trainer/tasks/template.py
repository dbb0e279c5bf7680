"""Templates of tasks: texts with fields of an item and a blank, as strings of tokens.

    {text:cut} In short, it was [MASK].

{name} is a field, {outer.inner} one below another, {{ and }} are braces. The blank is [MASK],
[sMASK] or [gMASK]; white space before it is dropped. The fields' texts are only texts, whatever
they hold. Behind a colon, joined by commas, stands what is done with a field:

    cut      where a row is too long, tokens are taken from its end, of several such from the last
    even     likewise, of several such from the longest, the last of equals
    plain    curly quotes and en dashes become those of ASCII
    open     the punctuation at its end is left out

A text is encoded string by string. What may be cut is a string by itself, with the white space
before it; {|} ends a string as well, and {|:cut} one that may be cut. The rules are those of
THUDM/GLM (commit 4f61ed7, tasks/superglue/pvp). Where cutting is not enough, the reference breaks
down, and here is an error.
"""

import re
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trainer.tasks.items import Item
from trainer.tasks.rows import Blank
from trainer.tasks.task import TaskContext

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


_FILTERS: dict[str, Callable[[str], str]] = {"plain": plain, "open": open_ended}


@dataclass(frozen=True)
class Part:
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


Template = tuple[Part, ...]


@dataclass(frozen=True)
class Piece:
    """A string of a template that is filled in."""

    text: str
    cut: str = ""
    mask: str = ""


def parse(template: str) -> Template:
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
        if name is not None:
            said = (spec or "").split(",") if spec else []
            cuts = [one for one in said if one in (CUT, EVEN)]
            filters = tuple(one for one in said if one in _FILTERS)
            if not name or conversion or len(cuts) > 1 or len(cuts) + len(filters) < len(said):
                raise ValueError(f"a field is {{name}} or {{name:{CUT}}}, not as in {template!r}")
            parts.append(Part(field=name, filters=filters, cut="".join(cuts)))
    return tuple(parts)


def fields_of(template: Template) -> list[str]:
    """Return the names of the fields of a template."""
    return [part.field for part in template if part.field and part.field != _SEAM]


def masks_of(template: Template) -> list[str]:
    """Return the kinds of the blanks of a template."""
    return [part.mask for part in template if part.mask]


def text_of(template: Template, item: Item) -> str:
    """Return a template without a blank, filled in.

    Raises:
        UserError: the item lacks a field, or it is no text.
    """
    return "".join(part.filled(item) for part in template)


def pieces_of(template: Template, item: Item) -> list[Piece]:
    """Return a template as strings, filled in.

    Raises:
        UserError: the item lacks a field, or it is no text.
    """
    return list(_pieces(template, item))


def _pieces(template: Template, item: Item) -> Iterator[Piece]:
    text = ""
    for part in template:
        if part.mask:
            yield Piece(text.rstrip())
            yield Piece("", mask=part.mask)
            text = ""
        elif part.field == _SEAM:
            yield Piece(text, cut=part.cut)
            text = ""
        elif part.cut:
            kept = text.rstrip()
            yield Piece(kept)
            yield Piece(text[len(kept) :] + part.filled(item), cut=part.cut)
            text = ""
        else:
            text += part.filled(item)
    if text:
        yield Piece(text)


def fill(
    pieces: Sequence[Piece], answer: Sequence[int], context: TaskContext, *, item: Item
) -> tuple[Blank, bool]:
    """Return the blank of a pattern with its answer, and whether it was cut.

    Part A ends with eos, unless it ends with [gMASK], after which a text simply goes on.

    Args:
        pieces: exactly one is a blank.
        answer: with the token that ends it; none: what follows sop is asked for.
        context: how items are asked.
        item: what an error is about.

    Raises:
        UserError: it does not fit, and nothing is left that may be cut.
    """
    special = context.tokenizer.special
    mask = special[next(piece.mask for piece in pieces if piece.mask)]
    ending = [] if pieces[-1].mask == "gmask" else [special["eos"]]
    ids, was_cut = fitted(pieces, context, item=item, taken=1 + len(ending) + max(1, len(answer)))
    blank = Blank.of(
        [special["cls"], *ids, *ending],
        mask_at=1 + ids.index(mask),
        sop=special["sop"],
        answer=answer,
    )
    return blank, was_cut


def fitted(
    pieces: Sequence[Piece], context: TaskContext, *, item: Item, taken: int
) -> tuple[list[int], bool]:
    """Return the ids of a pattern, cut to what is left of the length, and whether they were.

    Args:
        pieces: of the pattern.
        context: how items are asked.
        item: what an error is about.
        taken: tokens that the row has besides.

    Raises:
        UserError: they do not fit, and nothing is left that may be cut.
    """
    special = context.tokenizer.special
    ids = [[special[p.mask]] if p.mask else context.ids(p.text) for p in pieces]
    size = taken + sum(map(len, ids))
    cuttable = [(i, piece.cut) for i, piece in zip(ids, pieces, strict=True) if piece.cut]
    room = context.options.length
    for _ in range(size - room):
        left = [(i, len(i) if cut == EVEN else 1) for i, cut in reversed(cuttable) if i]
        if not left:
            raise item.wrong(
                f"the pattern with its answer has {size} tokens, --length is {room}, and cutting "
                "all that may be cut is not enough. Make it longer, as far as the model has "
                "positions; else shorten the item, or leave it out. A pattern of one's own may "
                "say what else may be cut: {name:cut}."
            )
        max(left, key=lambda one: one[1])[0].pop()
    return [i for several in ids for i in several], size > room
