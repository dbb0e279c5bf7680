"""The text of a batch before it has blanks, and the runs of it that a blank may cover."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shards.batch import Batch
from trainer.chance import Integers
from trainer.signs import Signs

Flags = NDArray[np.bool_]


class Text(NamedTuple):
    """Texts, one a row; all but `lengths` are [rows, width]."""

    tokens: Integers
    loss_mask: Flags
    """What may be predicted; False in the padding."""
    lengths: Integers
    pieces: Integers | None
    """The number of each token's document in the row; what lies in the padding is no matter."""


class Spans(NamedTuple):
    """Runs of tokens within rows, by row, then start; all are int64[n]."""

    rows: Integers
    starts: Integers
    sizes: Integers

    def of(self, chosen: Flags) -> "Spans":
        """Return the spans in the rows that are chosen, bool[rows]."""
        kept = chosen[self.rows]
        if kept.all():
            return self
        return Spans(self.rows[kept], self.starts[kept], self.sizes[kept])


def firsts(groups: Integers) -> Integers:
    """Return where each group begins in a sorted array."""
    begins = np.ones(len(groups), np.bool_)
    np.not_equal(groups[1:], groups[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def sums_within(groups: Integers, values: Integers) -> Integers:
    """Return the sum of each value, 0 or more, and those before it in its group, groups sorted."""
    sums = np.cumsum(values)
    first = firsts(groups)
    before = sums[first] - values[first]
    return sums - np.repeat(before, np.append(first[1:], len(groups)) - first)


def text_of(batch: Batch, *, numbered: bool) -> Text:
    """Return the text of GLM windows; its documents are numbered on request."""
    pieces = None
    if numbered and batch.pieces is not None:
        begins = np.zeros(batch.tokens.shape, np.int64)
        begins[batch.pieces.windows, batch.pieces.starts] = 1
        pieces = np.maximum(begins.cumsum(axis=1) - 1, 0)
    return Text(batch.tokens, batch.loss_mask, batch.lengths, pieces)


def find_runs(text: Text, signs: Signs) -> Spans:
    """Return the runs of tokens that a blank may cover: no prompt, no eos, no `[CLS]`.

    They are as long as can be, and within one document each, for a document ends in eos.
    """
    free = text.loss_mask & ~is_special(text, signs)
    height, width = free.shape
    framed = np.zeros(height * (width + 1) + 1, np.bool_)
    framed[1:].reshape(height, width + 1)[:, :width] = free
    edges = np.flatnonzero(framed[1:] != framed[:-1])
    begins = edges[::2]
    rows = begins // (width + 1)
    return Spans(rows, begins - rows * (width + 1), edges[1::2] - begins)


def is_special(text: Text, signs: Signs) -> Flags:
    """Return which tokens are eos or `[CLS]`; padding may be among them."""
    found: Flags = (text.tokens == signs.eos) | (text.tokens == signs.cls)
    return found
