"""Cloze patterns: strings around a blank, encoded one by one, and cut to the length of a row.

The rules are those of THUDM/GLM (commit 4f61ed7, tasks/superglue/pvp): what stands in a pattern is
encoded string by string; where a row is too long, tokens are taken from the end of the last string
that may be cut. Where that is not enough, the reference breaks down, and here is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.tasks.items import Item
from trainer.tasks.rows import Blank
from trainer.tasks.task import Asked


@dataclass(frozen=True)
class Piece:
    """A string of a pattern."""

    text: str
    may_shrink: bool = False
    """Tokens may be taken from its end."""
    mask: str = ""
    """The blank: mask, smask or gmask; it has no text."""


MASK = Piece("", mask="mask")


def cut(text: str) -> Piece:
    """Return a string that may be cut."""
    return Piece(text, may_shrink=True)


@dataclass(frozen=True)
class Pattern:
    """A pattern with its fields filled in; exactly one piece is the mask."""

    first: tuple[Piece | str, ...]
    second: tuple[Piece | str, ...] = ()
    """Of two groups, the one with more tokens to cut is cut; the second where they have as many."""

    @property
    def groups(self) -> list[list[Piece]]:
        """Return the pieces of both groups."""
        return [
            [piece if isinstance(piece, Piece) else Piece(piece) for piece in group]
            for group in (self.first, self.second)
        ]


def fill(
    pattern: Pattern, answer: Sequence[int], asked: Asked, *, item: Item
) -> tuple[Blank, bool]:
    """Return the blank of a pattern with its answer, and whether it was cut.

    Part A ends with eos, unless it ends with [gMASK], after which a text simply goes on.

    Args:
        pattern: filled in.
        answer: with the token that ends it; none: what follows sop is asked for.
        asked: how.
        item: what an error is about.

    Raises:
        UserError: it does not fit, and nothing is left that may be cut.
    """
    special = asked.tokenizer.special
    blank = next(piece for group in pattern.groups for piece in group if piece.mask)
    last = [piece for group in pattern.groups for piece in group][-1]
    ending = [] if last.mask == "gmask" else [special["eos"]]
    context, was_cut = fitted(
        pattern, asked, item=item, taken=1 + len(ending) + max(1, len(answer))
    )
    filled = Blank.of(
        [special["cls"], *context, *ending],
        mask_at=1 + context.index(special[blank.mask]),
        sop=special["sop"],
        answer=answer,
    )
    return filled, was_cut


def fitted(pattern: Pattern, asked: Asked, *, item: Item, taken: int) -> tuple[list[int], bool]:
    """Return a pattern's ids, cut to what is left of the length, and whether they were.

    Args:
        pattern: filled in.
        asked: how.
        item: what an error is about.
        taken: tokens that the row has besides.

    Raises:
        UserError: they do not fit, and nothing is left that may be cut.
    """
    special, groups = asked.tokenizer.special, pattern.groups
    encoded = [
        [[special[piece.mask]] if piece.mask else asked.ids(piece.text) for piece in group]
        for group in groups
    ]
    shrinkable = [[piece.may_shrink for piece in group] for group in groups]
    size = taken + sum(len(ids) for group in encoded for ids in group)
    if size > asked.length and not _shrink(encoded, shrinkable, by=size - asked.length):
        raise item.wrong(
            f"the pattern with its answer has {size} tokens, --length is {asked.length}, and "
            "cutting all that may be cut is not enough. Make it longer, as far as the model has "
            "positions; else shorten the item, or leave it out. A pattern of one's own may say "
            "what else may be cut: {name:cut}."
        )
    return [i for group in encoded for ids in group for i in ids], size > asked.length


def _shrink(encoded: list[list[list[int]]], shrinkable: list[list[bool]], *, by: int) -> bool:
    """Take so many tokens away in place; return whether there were enough."""
    for _ in range(by):
        left = [
            [ids for ids, may in zip(group, flags, strict=True) if may and ids]
            for group, flags in zip(encoded, shrinkable, strict=True)
        ]
        first, second = (sum(map(len, group)) for group in left)
        giving = left[0] if first > second else left[1]
        if not giving:
            return False
        giving[-1].pop()
    return True
