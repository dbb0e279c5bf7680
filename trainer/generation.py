"""The one blank of a sample that generates text: the end of the text, or a long run inside it.

Its length g is uniform on the integers from int(ratio · n) to n - 2, drawn for each sample. The end
of a text may run over several documents, each with its eos and `[CLS]`, of which the latter carries
no loss. It does not begin in a prompt, but behind it: there it is shorter. A run inside a text is
for texts of one document only; it is as long as that allows. After THUDM/GLM, blocklm_utils.py,
which draws one length a batch.
"""

from typing import NamedTuple

import numpy as np

from trainer.chance import Chance, Integers, Purpose, below, happens
from trainer.text import Flags, Spans, Text, firsts


class Generation(NamedTuple):
    """Blanks, one a row, and which of them are the end of their text."""

    spans: Spans
    is_end: Flags


def generation_spans(
    text: Text, runs: Spans, *, min_ratio: float, infill_prob: float, longest: int, chance: Chance
) -> Generation:
    """Return a blank in each row that has runs."""
    if not len(runs.rows):
        return Generation(runs, np.zeros(0, np.bool_))
    first = firsts(runs.rows)
    rows, num_runs = runs.rows[first], np.append(first[1:], len(runs.rows)) - first
    lengths = text.lengths[rows]
    most = np.maximum(lengths - 2, 1)
    least = np.minimum(np.maximum((min_ratio * lengths).astype(np.int64), 1), most)
    sizes = least + below(chance.words(Purpose.GENERATION_LENGTH, rows), most - least + 1)
    inside = (num_runs == 1) & happens(chance.words(Purpose.IS_INFILL, rows), infill_prob)
    room = runs.sizes[first]
    infills = np.minimum(np.minimum(sizes, room), longest)
    words = chance.words(Purpose.INFILL_START, rows)
    infill_starts = runs.starts[first] + below(words, room - infills + 1)
    end_starts = _ends(text, rows, lengths - sizes)
    starts = np.where(inside, infill_starts, end_starts)
    sizes = np.where(inside, infills, lengths - end_starts)
    return Generation(Spans(rows, starts, sizes), ~inside)


def _ends(text: Text, rows: Integers, starts: Integers) -> Integers:
    """Return the first token from each start on that may be predicted, else the last before it."""
    if text.loss_mask[rows, starts].all():
        return starts
    loss_mask = text.loss_mask[rows]
    columns = np.arange(loss_mask.shape[1])
    behind = loss_mask & (columns >= starts[:, None])
    last: Integers = columns[-1] - loss_mask[:, ::-1].argmax(axis=1)
    starts = np.where(behind.any(axis=1), behind.argmax(axis=1), last)
    return starts
