"""The text of a batch before it has blanks, and the runs of it that a blank may cover."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shards.batch import Batch
from trainer.blanks.sample_rng import Integers
from trainer.blanks.special_tokens import SpecialTokens

Flags = NDArray[np.bool_]


class TextRows(NamedTuple):
    """Texts, one per row; all but `lengths` are [rows, width]."""

    tokens: Integers
    loss_mask: Flags
    """What may be predicted; False in the padding."""
    lengths: Integers
    pieces: Integers | None
    """The number of each token's document in the row; values in the padding are arbitrary."""


class Spans(NamedTuple):
    """Runs of tokens within rows, sorted by row, then start; all are int64[n]."""

    rows: Integers
    starts: Integers
    sizes: Integers

    def in_rows(self, chosen: Flags) -> "Spans":
        """Return the spans in the chosen rows, bool[rows]."""
        kept = chosen[self.rows]
        if kept.all():
            return self
        return Spans(self.rows[kept], self.starts[kept], self.sizes[kept])


def group_starts(groups: Integers) -> Integers:
    """Return where each group begins in a sorted array."""
    is_start = np.ones(len(groups), np.bool_)
    np.not_equal(groups[1:], groups[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def running_sums(groups: Integers, values: Integers) -> Integers:
    """Return for each value, 0 or more, the sum up to it within its group; groups are sorted."""
    sums = np.cumsum(values)
    first = group_starts(groups)
    before = sums[first] - values[first]
    return sums - np.repeat(before, np.append(first[1:], len(groups)) - first)


def text_rows_of(batch: Batch, *, numbered: bool) -> TextRows:
    """Return the text of GLM windows, with its documents numbered on request."""
    pieces = None
    if numbered and batch.pieces is not None:
        begins = np.zeros(batch.tokens.shape, np.int64)
        begins[batch.pieces.windows, batch.pieces.starts] = 1
        pieces = np.maximum(begins.cumsum(axis=1) - 1, 0)
    return TextRows(batch.tokens, batch.loss_mask, batch.lengths, pieces)


def find_runs(text: TextRows, special: SpecialTokens) -> Spans:
    """Return the runs of tokens that a blank may cover: no prompt, no eos, no `[CLS]`.

    Each is as long as possible and within one document, since every document ends in eos.
    """
    free = text.loss_mask & ~is_special(text, special)
    height, width = free.shape
    framed = np.zeros(height * (width + 1) + 1, np.bool_)
    framed[1:].reshape(height, width + 1)[:, :width] = free
    edges = np.flatnonzero(framed[1:] != framed[:-1])
    begins = edges[::2]
    rows = begins // (width + 1)
    return Spans(rows, begins - rows * (width + 1), edges[1::2] - begins)


def is_special(text: TextRows, special: SpecialTokens) -> Flags:
    """Return which tokens are eos or `[CLS]`; padding may be among them."""
    flags: Flags = (text.tokens == special.eos) | (text.tokens == special.cls)
    return flags
