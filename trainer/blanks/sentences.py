"""Blanks that are whole sentences.

A sentence is text up to and including a token that ends one. What follows the last one of a
document is not a sentence, nor is one that the end of a window cuts off. Sentences are taken in
random order until they reach the budget; neighbours may both be taken. THUDM/GLM
(blocklm_utils.py) also takes the unfinished end of a window, which without sentence ends is all of
it.
"""

import numpy as np

from trainer.blanks.sample_rng import Integers, Purpose, SampleRng, shuffled_order
from trainer.blanks.text import Spans, SpecialTokens, TextRows, group_starts, running_sums


def find_sentences(text: TextRows, runs: Spans, special: SpecialTokens, *, longest: int) -> Spans:
    """Return all sentences within the runs of at most `longest` tokens."""
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
    fits = sizes <= longest
    rows, columns = np.divmod(starts[fits], width)
    return Spans(rows, columns, sizes[fits])


def choose_sentences(sentences: Spans, budgets: Integers, rng: SampleRng) -> Spans:
    """Return the sentences that become blanks.

    Args:
        sentences: the candidates.
        budgets: by row, how many tokens to cover at least, as far as the sentences suffice.
        rng: the random numbers of the batch.
    """
    if not len(sentences.rows):
        return sentences
    words = rng.stream(Purpose.SENTENCE_ORDER, sentences.rows, sentences.starts)
    order = shuffled_order(sentences.rows, words)
    rows, sizes = sentences.rows[order], sentences.sizes[order]
    before = running_sums(rows, sizes) - sizes
    chosen = np.sort(order[before < budgets[rows]])
    return Spans(*(column[chosen] for column in sentences))
