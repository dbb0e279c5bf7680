"""Short texts: a part of a text in place of the whole, for some samples.

After THUDM/GLM, split_samples in blocklm_utils.py. It cuts a whole batch into parts of one length,
K of each text, which may overlap; here each sample decides by itself, and one sample stays one
sample: the rest of its text is not seen in that epoch.
"""

from typing import NamedTuple

import numpy as np

from trainer.chance import Chance, Integers, Purpose, below, happens
from trainer.signs import Signs
from trainer.text import Text

_SHORTEST = 32
"""The reference's least length."""


class _Parts(NamedTuple):
    """Where parts are in their rows."""

    rows: Integers
    begins: Integers
    ends: Integers


def shortened(
    text: Text, signs: Signs, *, probability: float, max_positions: int, chance: Chance
) -> Text:
    """Return the text with some rows cut to a part of them; all rows keep their place.

    The length is uniform on [32, P - 1), on [P/2, P - 1) for models of less than 64 positions; a
    text that is no longer stays whole. The part begins at a uniformly random token, moved left to
    where a sentence or document begins, and ends where one ends, unless that halved it. It begins
    with `[CLS]`. A part without anything to predict is not taken.
    """
    if not probability:
        return text
    rows = np.flatnonzero(happens(chance.words(Purpose.IS_SHORT), probability))
    if not len(rows):
        return text
    least = min(_SHORTEST, max_positions // 2)
    limits = np.full(len(rows), max(1, max_positions - 1 - least))
    sizes = least + below(chance.words(Purpose.SHORT_LENGTH, rows), limits)
    longer = sizes < text.lengths[rows] - _heads(text, rows, signs)
    rows, sizes = rows[longer], sizes[longer]
    if not len(rows):
        return text
    words = chance.words(Purpose.SHORT_START, rows)
    first = _heads(text, rows, signs)
    starts = first + below(words, text.lengths[rows] - sizes - first)
    return _cut(text, _parts(text, signs, rows=rows, starts=starts, sizes=sizes), signs)


def _heads(text: Text, rows: Integers, signs: Signs) -> Integers:
    """Return 1 for each row that begins with `[CLS]`."""
    heads: Integers = (text.tokens[rows, 0] == signs.cls).astype(np.int64)
    return heads


def _parts(
    text: Text, signs: Signs, *, rows: Integers, starts: Integers, sizes: Integers
) -> _Parts:
    """Return the parts near the places drawn that begin and end with sentences."""
    tokens = text.tokens[rows]
    columns = np.arange(tokens.shape[1])
    closes = signs.sentence_ends[tokens] | (tokens == signs.eos)
    opens = np.zeros_like(closes)
    opens[:, 1:] = closes[:, :-1] & (tokens[:, 1:] != signs.eos)
    own = np.arange(len(rows))
    last_open = np.maximum.accumulate(np.where(opens, columns, 0), axis=1)
    begins = np.maximum(last_open[own, starts], _heads(text, rows, signs))
    last_close = np.maximum.accumulate(np.where(closes, columns + 1, 0), axis=1)
    ends = last_close[own, begins + sizes - 1]
    ends = np.where(ends - begins < np.maximum(sizes // 2, 1), begins + sizes, ends)
    return _Parts(rows, begins + (tokens[own, begins] == signs.cls), ends)


def _cut(text: Text, parts: _Parts, signs: Signs) -> Text:
    """Return the text with these parts, a `[CLS]` before each, in place of their rows."""
    columns = np.arange(text.tokens.shape[1])
    lengths = parts.ends - parts.begins + 1
    places = np.clip(parts.begins[:, None] + columns - 1, 0, columns[-1])
    rows = parts.rows[:, None]
    inside = (columns > 0) & (columns < lengths[:, None])
    loss_mask = text.loss_mask[rows, places] & inside
    kept = loss_mask.any(axis=1)
    rows, places, taken = rows[kept], places[kept], parts.rows[kept]
    tokens = text.tokens[rows, places]
    tokens[:, 0] = signs.cls
    result = Text(text.tokens.copy(), text.loss_mask.copy(), text.lengths.copy(), text.pieces)
    result.tokens[taken], result.loss_mask[taken] = tokens, loss_mask[kept]
    result.lengths[taken] = lengths[kept]
    if text.pieces is None:
        return result
    pieces = text.pieces.copy()
    numbers = pieces[rows, places]
    numbers[:, 0] = numbers[:, 1]
    pieces[taken] = numbers
    return result._replace(pieces=pieces)
