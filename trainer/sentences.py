"""Blanks that are whole sentences.

A sentence is text up to a token with a sentence end. What a document has behind its last one is
none, nor is what the end of a window cuts off. Sentences are taken in random order until they reach
the budget; neighbours may both be taken. THUDM/GLM (blocklm_utils.py) takes the unfinished end of a
window too, which without sentence ends is all of it.
"""

import numpy as np

from trainer.chance import Chance, Integers, Purpose, shuffled
from trainer.signs import Signs
from trainer.text import Spans, Text, firsts, sums_within


def sentences_of(text: Text, runs: Spans, signs: Signs, *, longest: int) -> Spans:
    """Return all sentences within the runs that have at most so many tokens."""
    if not len(runs.rows):
        return runs
    width = text.tokens.shape[1]
    rows = runs.rows[firsts(runs.rows)]
    at, columns = np.nonzero(signs.sentence_ends[text.tokens[rows]])
    ends = rows[at] * width + columns
    begins = runs.rows * width + runs.starts
    owners = np.searchsorted(begins, ends, side="right") - 1
    inside = (owners >= 0) & (ends < (begins + runs.sizes)[owners])
    ends, owners = ends[inside], owners[inside]
    starts = begins[owners]
    follows = owners[1:] == owners[:-1]
    starts[1:][follows] = ends[:-1][follows] + 1
    sizes = ends + 1 - starts
    fits = sizes <= longest
    rows, columns = np.divmod(starts[fits], width)
    return Spans(rows, columns, sizes[fits])


def sentence_spans(sentences: Spans, budgets: Integers, chance: Chance) -> Spans:
    """Return the sentences that become blanks.

    Args:
        sentences: what there is to choose from.
        budgets: by row, how many tokens they cover at least, if there are so many.
        chance: the random numbers of the batch.
    """
    if not len(sentences.rows):
        return sentences
    words = chance.stream(Purpose.SENTENCE_ORDER, sentences.rows, sentences.starts)
    order = shuffled(sentences.rows, words)
    rows, sizes = sentences.rows[order], sentences.sizes[order]
    before = sums_within(rows, sizes) - sizes
    taken = np.sort(order[before < budgets[rows]])
    return Spans(*(part[taken] for part in sentences))
