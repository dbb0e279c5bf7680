"""Chooses whole sentences as blanks, and shortens texts to a few sentences.

A sentence is text up to and including a token that ends a sentence. The rest of a document after
its last sentence does not count, nor does a sentence that the end of a window cuts off. Sentences
are taken in random order until they reach the budget; two neighbours may both be taken. THUDM/GLM
(blocklm_utils.py) also takes the unfinished end of a window, which is the whole window if no
sentence ends in the window.

For some samples, a part of the text replaces the whole. That follows split_samples in THUDM/GLM's
blocklm_utils.py, which cuts a whole batch into parts of equal length, K possibly overlapping parts
from each text. Here the choice is made separately for each sample, which stays one sample: the rest
of its text is not seen in that epoch.
"""

from typing import NamedTuple

import numpy as np

from trainer.blanks.text import (
    BlankSpans,
    Integers,
    Purpose,
    SampleRng,
    SpecialTokens,
    TextRows,
    group_starts,
    happens,
    integers_below,
    running_sums,
    shuffled_order,
)


def find_sentences(
    text: TextRows, runs: BlankSpans, special: SpecialTokens, *, max_size: int
) -> BlankSpans:
    """Return all sentences of at most `max_size` tokens within the runs."""
    if not len(runs.rows):
        return runs
    width = text.tokens.shape[1]
    rows = runs.rows[group_starts(runs.rows)]
    indices, columns = np.nonzero(special.sentence_ends[text.tokens[rows]])
    ends = rows[indices] * width + columns
    begins = runs.rows * width + runs.starts
    owners = np.searchsorted(begins, ends, side="right") - 1
    inside = (owners >= 0) & (ends < (begins + runs.sizes)[owners])
    ends, owners = ends[inside], owners[inside]
    starts = begins[owners]
    follows = owners[1:] == owners[:-1]
    starts[1:][follows] = ends[:-1][follows] + 1
    sizes = ends + 1 - starts
    fits = sizes <= max_size
    rows, columns = np.divmod(starts[fits], width)
    return BlankSpans(rows, columns, sizes[fits])


def choose_sentences(sentences: BlankSpans, budgets: Integers, rng: SampleRng) -> BlankSpans:
    """Return the sentences that become blanks.

    Args:
        sentences: the candidates.
        budgets: the minimum number of tokens to cover in each row, if the sentences suffice.
        rng: the random numbers of the batch.
    """
    if not len(sentences.rows):
        return sentences
    words = rng.stream(Purpose.SENTENCE_ORDER, sentences.rows, sentences.starts)
    order = shuffled_order(sentences.rows, words)
    rows, sizes = sentences.rows[order], sentences.sizes[order]
    before = running_sums(rows, sizes) - sizes
    chosen = np.sort(order[before < budgets[rows]])
    return BlankSpans(*(column[chosen] for column in sentences))


_MIN_LENGTH = 32
"""The minimum length, in tokens, that THUDM/GLM draws."""


class _Parts(NamedTuple):
    """The places of parts in their rows."""

    rows: Integers
    begins: Integers
    ends: Integers


def shorten_texts(
    text: TextRows,
    special: SpecialTokens,
    *,
    probability: float,
    max_positions: int,
    rng: SampleRng,
) -> TextRows:
    """Return the text with some rows cut down to a part; every row keeps its number.

    The length is uniform on [32, P - 1), or on [P/2, P - 1) for models of fewer than 64 positions;
    a text that is no longer than that stays whole. The part begins at a uniformly random token,
    moved left to the beginning of a sentence or document, and ends at the end of one unless that
    would halve the part. It begins with `[CLS]`. If the part has nothing to predict, the text stays
    whole.
    """
    if not probability:
        return text
    rows = np.flatnonzero(happens(rng.words(Purpose.IS_SHORT), probability))
    if not len(rows):
        return text
    min_length = min(_MIN_LENGTH, max_positions // 2)
    limits = np.full(len(rows), max(1, max_positions - 1 - min_length))
    sizes = min_length + integers_below(rng.words(Purpose.SHORT_LENGTH, rows), limits)
    longer = sizes < text.lengths[rows] - _num_heads(text, rows, special)
    rows, sizes = rows[longer], sizes[longer]
    if not len(rows):
        return text
    words = rng.words(Purpose.SHORT_START, rows)
    first = _num_heads(text, rows, special)
    starts = first + integers_below(words, text.lengths[rows] - sizes - first)
    return _cut(text, _parts(text, special, rows=rows, starts=starts, sizes=sizes), special)


def _num_heads(text: TextRows, rows: Integers, special: SpecialTokens) -> Integers:
    """Return 1 for each row that begins with `[CLS]`, else 0."""
    heads: Integers = (text.tokens[rows, 0] == special.cls).astype(np.int64)
    return heads


def _parts(
    text: TextRows, special: SpecialTokens, *, rows: Integers, starts: Integers, sizes: Integers
) -> _Parts:
    """Return the drawn parts, moved so that they begin and end with sentences."""
    tokens = text.tokens[rows]
    columns = np.arange(tokens.shape[1])
    closes = special.sentence_ends[tokens] | (tokens == special.eos)
    opens = np.zeros_like(closes)
    opens[:, 1:] = closes[:, :-1] & (tokens[:, 1:] != special.eos)
    own = np.arange(len(rows))
    last_open = np.maximum.accumulate(np.where(opens, columns, 0), axis=1)
    begins = np.maximum(last_open[own, starts], _num_heads(text, rows, special))
    last_close = np.maximum.accumulate(np.where(closes, columns + 1, 0), axis=1)
    ends = last_close[own, begins + sizes - 1]
    ends = np.where(ends - begins < np.maximum(sizes // 2, 1), begins + sizes, ends)
    begins = np.where(tokens[own, begins] == special.cls, begins + 1, begins)
    return _Parts(rows, begins, ends)


def _cut(text: TextRows, parts: _Parts, special: SpecialTokens) -> TextRows:
    """Return the text with rows replaced by their parts, each after a `[CLS]`."""
    columns = np.arange(text.tokens.shape[1])
    lengths = parts.ends - parts.begins + 1
    sources = np.clip(parts.begins[:, None] + columns - 1, 0, columns[-1])
    rows = parts.rows[:, None]
    inside = (columns > 0) & (columns < lengths[:, None])
    loss_mask = text.loss_mask[rows, sources] & inside
    kept = loss_mask.any(axis=1)
    rows, sources, cut_rows = rows[kept], sources[kept], parts.rows[kept]
    tokens = text.tokens[rows, sources]
    tokens[:, 0] = special.cls
    result = TextRows(text.tokens.copy(), text.loss_mask.copy(), text.lengths.copy(), text.pieces)
    result.tokens[cut_rows], result.loss_mask[cut_rows] = tokens, loss_mask[kept]
    result.lengths[cut_rows] = lengths[kept]
    if text.pieces is None:
        return result
    pieces = text.pieces.copy()
    numbers = pieces[rows, sources]
    numbers[:, 0] = numbers[:, 1]
    pieces[cut_rows] = numbers
    return result._replace(pieces=pieces)
