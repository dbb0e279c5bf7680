"""The one blank of a sample that generates text: the end of the text, or a long run inside it.

Its length g is uniform on the integers from int(ratio · n) to n - 2, drawn for each sample. The end
of a text may span several documents, each with its eos and `[CLS]`, of which `[CLS]` carries no
loss. It never begins inside a prompt but after it, and is shorter then. A run inside the text is
only for texts of one document, and no longer than that document allows. Follows THUDM/GLM,
blocklm_utils.py, which draws one length per batch.
"""

from typing import NamedTuple

import numpy as np

from trainer.blanks.text import (
    Flags,
    Integers,
    Purpose,
    SampleRng,
    Spans,
    TextRows,
    group_starts,
    happens,
    integers_below,
)


class GenerationBlanks(NamedTuple):
    """Blanks, one per row, and which of them are the end of their text."""

    spans: Spans
    is_end: Flags


def choose_generation_blanks(
    text: TextRows,
    runs: Spans,
    *,
    min_ratio: float,
    infill_prob: float,
    longest: int,
    rng: SampleRng,
) -> GenerationBlanks:
    """Return one blank for each row that has runs."""
    if not len(runs.rows):
        return GenerationBlanks(runs, np.zeros(0, np.bool_))
    first = group_starts(runs.rows)
    rows, num_runs = runs.rows[first], np.append(first[1:], len(runs.rows)) - first
    lengths = text.lengths[rows]
    most = np.maximum(lengths - 2, 1)
    least = np.minimum(np.maximum((min_ratio * lengths).astype(np.int64), 1), most)
    sizes = least + integers_below(rng.words(Purpose.GENERATION_LENGTH, rows), most - least + 1)
    is_infill = (num_runs == 1) & happens(rng.words(Purpose.IS_INFILL, rows), infill_prob)
    room = runs.sizes[first]
    infill_sizes = np.minimum(np.minimum(sizes, room), longest)
    words = rng.words(Purpose.INFILL_START, rows)
    infill_starts = runs.starts[first] + integers_below(words, room - infill_sizes + 1)
    end_starts = _end_starts(text, rows, lengths - sizes)
    starts = np.where(is_infill, infill_starts, end_starts)
    sizes = np.where(is_infill, infill_sizes, lengths - end_starts)
    return GenerationBlanks(Spans(rows, starts, sizes), ~is_infill)


def _end_starts(text: TextRows, rows: Integers, starts: Integers) -> Integers:
    """Return the first predictable token from each start on, else the last one before it."""
    if text.loss_mask[rows, starts].all():
        return starts
    loss_mask = text.loss_mask[rows]
    columns = np.arange(loss_mask.shape[1])
    from_start = loss_mask & (columns >= starts[:, None])
    last: Integers = columns[-1] - loss_mask[:, ::-1].argmax(axis=1)
    starts = np.where(from_start.any(axis=1), from_start.argmax(axis=1), last)
    return starts
