"""Cloze patterns: strings around a blank, encoded one by one, and cut to the length of a row.

The rules are those of THUDM/GLM (commit 4f61ed7, tasks/superglue/pvp): what stands in a pattern is
encoded string by string; where a row is too long, tokens are taken from the end of the last string
that may be cut. Where that is not enough, the reference breaks down, and here is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.tasks.items import Item
from trainer.tasks.rows import Row, blank_row
from trainer.tasks.task import Asked


@dataclass(frozen=True)
class Piece:
    """A string of a pattern."""

    text: str | None
    """None: the mask."""
    may_shrink: bool = False
    """Tokens may be taken from its end."""


MASK = Piece(None)


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


def fill(pattern: Pattern, answer: Sequence[int], asked: Asked, *, item: Item) -> tuple[Row, bool]:
    """Return the row in which an answer fills a pattern's blank, and whether it was cut.

    Args:
        pattern: filled in.
        answer: with the token that ends it; none: one token is asked for, after the row.
        asked: how.
        item: what an error is about.

    Raises:
        UserError: it does not fit, and nothing is left that may be cut.
    """
    special = asked.tokenizer.special
    encoded = [
        [[special["mask"]] if piece.text is None else asked.ids(piece.text) for piece in group]
        for group in pattern.groups
    ]
    # [CLS] and eos; for a single token, sop as well, whose place the answer's end has otherwise.
    room = asked.length - len(answer) - (2 if answer else 3)
    shrinkable = [[piece.may_shrink for piece in group] for group in pattern.groups]
    size = sum(len(ids) for group in encoded for ids in group)
    was_cut = size > room
    if was_cut and not _shrink(encoded, shrinkable, by=size - room):
        raise item.wrong(
            f"the pattern with its answer has {size + asked.length - room} tokens, --length is "
            f"{asked.length}, and cutting all that may be cut is not enough. Make it longer."
        )
    context = [special["cls"], *(i for group in encoded for ids in group for i in ids)]
    place = context.index(special["mask"])
    row = blank_row([*context, special["eos"]], mask_at=place, sop=special["sop"], answer=answer)
    return row, was_cut


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
