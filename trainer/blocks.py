"""Texts with blanks as the rows that a GLM is trained on.

    text         [CLS] a b c d e f eos          blanks: b c (block 2) and e (block 1)
    tokens       [CLS] a [MASK] d [MASK] f eos | sop e   | sop b c
    targets                                    | e   eop | b   c eop
    position         0 1    2   3    4   5  6  |  4  4   |  2  2 2
    block position   0 0    0   0    0   0  0  |  1  2   |  1  2 3
                    Part A, sep = 7 tokens       Part B, which carries the loss

Blocks are shuffled (GLM, arXiv:2103.10360, section 2.1; THUDM/GLM, blocklm_utils.py,
make_block_data). A blank that is the end of its text gets no `eop`: the text ends as it ends.
"""

from typing import NamedTuple

import numpy as np

from trainer.chance import Chance, Integers, Purpose, shuffled
from trainer.signs import Signs
from trainer.text import Flags, Spans, Text, sums_within

MULTIPLE = 64
"""Rows are padded to a multiple of so many tokens, which suits matrix units."""


class Blanks(NamedTuple):
    """The blanks of a batch."""

    spans: Spans
    is_end: Flags
    """By blank: it is the end of its text."""
    masks: Integers
    """By row: the token that stands for a blank."""


class Rows(NamedTuple):
    """What was made of each text; [rows, width] where nothing else is said."""

    tokens: Integers
    targets: Integers
    """Only in Part B; elsewhere padding."""
    loss_mask: Flags
    position_ids: Integers
    """[rows, 2, width]: position, block position."""
    sep: Integers
    """[rows]: tokens of Part A."""
    lengths: Integers
    """[rows]: tokens without padding."""
    pieces: Integers | None
    """The document of each token, -1 in the padding."""


class _Blocks(NamedTuple):
    """The blocks of all rows, laid end to end; by row, then in the order that they have there."""

    order: Integers
    """[blocks]: the number of its blank."""
    offsets: Integers
    """[blocks]: where it begins."""
    sizes: Integers
    """[blocks]: its tokens."""
    predicted: Integers
    """[tokens]: where its target is in the flattened texts; that of eop is its last token."""
    eops: Integers
    """Tokens whose target is eop."""


def assemble(text: Text, blanks: Blanks, signs: Signs, *, inputs: Integers, chance: Chance) -> Rows:
    """Return the rows of texts with blanks.

    Args:
        text: the texts.
        blanks: what is taken out of them; no two overlap.
        signs: the special tokens.
        inputs: the tokens of the texts as the model sees them; targets are the true ones.
        chance: the random numbers of the batch.
    """
    spans = blanks.spans
    height = len(text.lengths)
    sizes = spans.sizes + 1 - blanks.is_end
    sep = text.lengths - _sums(spans.rows, spans.sizes - 1, height)
    lengths = sep + _sums(spans.rows, sizes, height)
    shape = height, max(1, -(-int(lengths.max(initial=0)) // MULTIPLE)) * MULTIPLE
    rows = Rows(
        tokens=np.full(shape, signs.pad),
        targets=np.full(shape, signs.pad),
        loss_mask=np.zeros(shape, np.bool_),
        position_ids=np.zeros((height, 2, shape[1]), np.int64),
        sep=sep,
        lengths=lengths,
        pieces=None if text.pieces is None else np.full(shape, -1),
    )
    blocks = _blocks(blanks, sizes, width=text.tokens.shape[1], chance=chance)
    _put_context(rows, text, blanks, inputs=inputs, hidden=blocks.predicted)
    _put_blocks(rows, text, blanks, signs, inputs=inputs, blocks=blocks)
    return rows


def _sums(rows: Integers, values: Integers, height: int) -> Integers:
    """Return the sum of values by row."""
    return np.bincount(rows, values, height).astype(np.int64)


def _blocks(blanks: Blanks, sizes: Integers, *, width: int, chance: Chance) -> _Blocks:
    """Return the blocks of so many tokens, each row's in random order."""
    rows, starts, _ = blanks.spans
    order = shuffled(rows, chance.stream(Purpose.BLOCK_ORDER, rows, starts))
    sizes = sizes[order]
    ends = np.cumsum(sizes)
    offsets = ends - sizes
    predicted = np.repeat(rows[order] * width + starts[order] - offsets, sizes)
    predicted += np.arange(len(predicted))
    eops = (ends - 1)[~blanks.is_end[order]]
    predicted[eops] -= 1
    return _Blocks(order, offsets, sizes, predicted, eops)


def _put_context(
    rows: Rows, text: Text, blanks: Blanks, *, inputs: Integers, hidden: Integers
) -> None:
    """Write Part A: the text, each blank one token; `hidden` are the flat places of all blanks."""
    spans = blanks.spans
    source = inputs.copy()
    source[spans.rows, spans.starts] = blanks.masks[spans.rows]
    kept = np.arange(inputs.shape[1]) < text.lengths[:, None]
    kept.reshape(-1)[hidden] = False
    kept[spans.rows, spans.starts] = True
    columns = np.arange(rows.tokens.shape[1])
    in_context = columns < rows.sep[:, None]
    rows.tokens[in_context] = source[kept]
    np.multiply(columns, in_context, out=rows.position_ids[:, 0])
    if text.pieces is not None and rows.pieces is not None:
        rows.pieces[in_context] = text.pieces[kept]


def _put_blocks(
    rows: Rows, text: Text, blanks: Blanks, signs: Signs, *, inputs: Integers, blocks: _Blocks
) -> None:
    """Write Part B."""
    spans, (order, offsets, sizes, predicted, eops) = blanks.spans, blocks
    columns = np.arange(rows.tokens.shape[1])
    # Part B of a row is one run, and the rows come in order, as what is written there does.
    inside = (columns >= rows.sep[:, None]) & (columns < rows.lengths[:, None])
    seen = predicted - 1
    seen[eops] += 1
    seen[offsets] += 1  # sop is of the document of the token that it predicts
    tokens, targets = inputs.take(seen), text.tokens.take(predicted)
    counted = text.loss_mask.take(predicted)
    tokens[offsets], targets[eops], counted[eops] = signs.sop, signs.eop, True
    rows.tokens[inside] = tokens
    rows.targets[inside] = targets
    rows.loss_mask[inside] = counted
    if text.pieces is not None and rows.pieces is not None:
        rows.pieces[inside] = text.pieces.take(seen)
    # A mask stands where its blank began, less what blanks before it hide.
    hidden = spans.sizes - 1
    masks = spans.starts - (sums_within(spans.rows, hidden) - hidden)
    rows.position_ids[:, 0][inside] = np.repeat(masks[order], sizes)
    places = np.arange(len(predicted)) - np.repeat(offsets - 1, sizes)
    rows.position_ids[:, 1][inside] = places
