"""Turns texts with blanks into the rows that a GLM is trained on.

    text         [CLS] a b c d e f eos          blanks: b c (block 2) and e (block 1)
    tokens       [CLS] a [MASK] d [MASK] f eos | sop e   | sop b c
    targets                                    | e   eop | b   c eop
    position         0 1    2   3    4   5  6  |  4  4   |  2  2 2
    block position   0 0    0   0    0   0  0  |  1  2   |  1  2 3
                    Part A, sep = 7 tokens       Part B, which carries the loss

Blocks are shuffled (GLM, arXiv:2103.10360, section 2.1; THUDM/GLM, blocklm_utils.py,
make_block_data). A blank at the end of its text gets no `eop`: it ends where the text ends.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainer.blanks.text import (
    BlankSpans,
    Flags,
    Integers,
    Purpose,
    SampleRng,
    SpecialTokens,
    TextRows,
    running_sums,
    shuffled_order,
)

WIDTH_MULTIPLE = 64
"""Rows are padded to a multiple of this many tokens, which suits the matrix units of GPUs."""


class Blanks(NamedTuple):
    """The blanks of a batch."""

    spans: BlankSpans
    is_end: Flags
    """For each blank, whether it is the end of its text."""
    masks: Integers
    """For each row, the token that replaces its blanks."""
    objectives: Integers
    """The `Objective` of each row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GlmBatch:
    """Rows for a GLM: b rows of width n, which is a multiple of 64."""

    tokens: Integers
    """[b, n]: Part A, Part B and padding."""
    targets: Integers
    """[b, n]: the targets in Part B; padding elsewhere."""
    loss_mask: Flags
    """[b, n]: whether a target counts in the loss."""
    position_ids: Integers
    """[b, 2, n]: positions, then block positions, which are 0 in Part A."""
    sep: Integers
    """[b]: the number of tokens in Part A, to which all tokens attend."""
    lengths: Integers
    """[b]: the number of tokens, not counting padding."""
    objective: NDArray[np.int8]
    """[b]: each row's `Objective`; token spans if sentences were drawn for a text that has none."""
    source: Integers
    """[b]: the number of the stream that the text comes from."""
    pieces: Integers | None
    """[b, n]: the number of each token's document within the row, from 0, and -1 in the padding;
    None unless requested."""


class _Blocks(NamedTuple):
    """The blocks of all rows, laid end to end, by row and then by their order within the row."""

    order: Integers
    """[blocks]: the index of the block's blank."""
    offsets: Integers
    """[blocks]: the position at which the block begins."""
    sizes: Integers
    """[blocks]: the number of tokens of the block."""
    predicted: Integers
    """[tokens]: the index of each target in the flattened texts; for eop, the index of the blank's
    last token."""
    eops: Integers
    """The indices of the tokens whose target is eop."""


def assemble(
    text: TextRows,
    blanks: Blanks,
    special: SpecialTokens,
    *,
    inputs: Integers,
    sources: Integers,
    rng: SampleRng,
) -> GlmBatch:
    """Return the training rows made from texts and their blanks.

    Args:
        text: the texts.
        blanks: the spans to take out of the texts; no two overlap.
        special: the special tokens.
        inputs: the tokens that the model sees; the targets come from `text`.
        sources: the number of each text's stream, which is passed through.
        rng: the random numbers of the batch.
    """
    spans = blanks.spans
    height = len(text.lengths)
    sizes = np.where(blanks.is_end, spans.sizes, spans.sizes + 1)
    sep = text.lengths - _sums_by_row(spans.rows, spans.sizes - 1, height)
    lengths = sep + _sums_by_row(spans.rows, sizes, height)
    shape = height, max(1, -(-int(lengths.max(initial=0)) // WIDTH_MULTIPLE)) * WIDTH_MULTIPLE
    rows = GlmBatch(
        tokens=np.full(shape, special.pad),
        targets=np.full(shape, special.pad),
        loss_mask=np.zeros(shape, np.bool_),
        position_ids=np.zeros((height, 2, shape[1]), np.int64),
        sep=sep,
        lengths=lengths,
        pieces=None if text.pieces is None else np.full(shape, -1),
        objective=blanks.objectives.astype(np.int8),
        source=sources,
    )
    blocks = _blocks(blanks, sizes, width=text.tokens.shape[1], rng=rng)
    _put_context(rows, text, blanks, inputs=inputs, hidden=blocks.predicted)
    _put_blocks(rows, text, blanks, special, inputs=inputs, blocks=blocks)
    return rows


def _sums_by_row(rows: Integers, values: Integers, height: int) -> Integers:
    """Return the sum of each row's values."""
    return np.bincount(rows, values, height).astype(np.int64)


def _blocks(blanks: Blanks, sizes: Integers, *, width: int, rng: SampleRng) -> _Blocks:
    """Return the blocks of these sizes, in random order within their rows."""
    rows, starts, _ = blanks.spans
    order = shuffled_order(rows, rng.stream(Purpose.BLOCK_ORDER, rows, starts))
    sizes = sizes[order]
    ends = np.cumsum(sizes)
    offsets = ends - sizes
    predicted = np.repeat(rows[order] * width + starts[order] - offsets, sizes)
    predicted += np.arange(len(predicted))
    eops = (ends - 1)[~blanks.is_end[order]]
    predicted[eops] -= 1
    return _Blocks(order, offsets, sizes, predicted, eops)


def _put_context(
    rows: GlmBatch, text: TextRows, blanks: Blanks, *, inputs: Integers, hidden: Integers
) -> None:
    """Write Part A: the text with one token per blank; `hidden` has the flat indices of blanks."""
    spans = blanks.spans
    source = inputs.copy()
    source[spans.rows, spans.starts] = blanks.masks[spans.rows]
    kept = np.arange(inputs.shape[1]) < text.lengths[:, None]
    kept.reshape(-1)[hidden] = False
    kept[spans.rows, spans.starts] = True
    columns = np.arange(rows.tokens.shape[1])
    in_context = columns < rows.sep[:, None]
    rows.tokens[in_context] = source[kept]
    rows.position_ids[:, 0] = np.where(in_context, columns, 0)
    if text.pieces is not None and rows.pieces is not None:
        rows.pieces[in_context] = text.pieces[kept]


def _put_blocks(
    rows: GlmBatch,
    text: TextRows,
    blanks: Blanks,
    special: SpecialTokens,
    *,
    inputs: Integers,
    blocks: _Blocks,
) -> None:
    """Write Part B."""
    spans, (order, offsets, sizes, predicted, eops) = blanks.spans, blocks
    columns = np.arange(rows.tokens.shape[1])
    # Part B of a row is contiguous, and blocks come in the order of the rows, so one flat
    # assignment fills it.
    inside = (columns >= rows.sep[:, None]) & (columns < rows.lengths[:, None])
    seen = predicted - 1
    seen[eops] += 1
    seen[offsets] += 1  # sop belongs to the document of the token that it predicts
    tokens, targets = inputs.take(seen), text.tokens.take(predicted)
    counted = text.loss_mask.take(predicted)
    tokens[offsets], targets[eops], counted[eops] = special.sop, special.eop, True
    rows.tokens[inside] = tokens
    rows.targets[inside] = targets
    rows.loss_mask[inside] = counted
    if text.pieces is not None and rows.pieces is not None:
        rows.pieces[inside] = text.pieces.take(seen)
    # The position of a mask is the start of its blank minus the number of tokens that earlier
    # blanks hide.
    hidden = spans.sizes - 1
    masks = spans.starts - (running_sums(spans.rows, hidden) - hidden)
    rows.position_ids[:, 0][inside] = np.repeat(masks[order], sizes)
    block_positions = np.arange(len(predicted)) - np.repeat(offsets - 1, sizes)
    rows.position_ids[:, 1][inside] = block_positions
