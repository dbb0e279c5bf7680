"""Which tokens the model sees as `[dBLOCK]`, in samples of token spans.

Two kinds, after THUDM/GLM (blocklm_utils.py, make_block_data): tokens of Part B, each by itself
with one probability (its target stays), and tokens of Part A near a blank, a share of the text.
"""

from typing import NamedTuple

import numpy as np

from trainer.chance import Chance, Integers, Purpose, happens, shuffled
from trainer.text import Spans, sums_within

_NEAR = np.array([-3, -2, -1, 0, 1, 2])
"""How far tokens near a blank are from its first token, and behind it from its end: three on each
side, the reference's context_mask_range."""


class Places(NamedTuple):
    """Tokens of texts."""

    rows: Integers
    columns: Integers


def noise_in_blanks(blanks: Spans, probability: float, chance: Chance) -> Places:
    """Return tokens of the blanks, each with this probability."""
    nth = np.repeat(np.arange(len(blanks.rows)), blanks.sizes)
    counts = np.arange(len(nth)) - (np.cumsum(blanks.sizes) - blanks.sizes)[nth]
    rows, columns = blanks.rows[nth], blanks.starts[nth] + counts
    hit = happens(chance.stream(Purpose.BLOCK_MASK, rows, columns), probability)
    return Places(rows[hit], columns[hit])


def noise_in_context(runs: Spans, blanks: Spans, numbers: Integers, chance: Chance) -> Places:
    """Return tokens near blanks, in the runs of the blanks and in no blank.

    Args:
        runs: where the blanks are.
        blanks: by row, then start.
        numbers: by row, how many tokens to return, if there are so many.
        chance: the random numbers of the batch.
    """
    # A row is laid behind the other, with more between them than a blank looks around.
    width = int((runs.starts + runs.sizes).max(initial=0)) + len(_NEAR)
    begins = blanks.rows * width + blanks.starts
    found = begins[:, None] + _NEAR + np.where(_NEAR < 0, 0, blanks.sizes[:, None])
    run_begins = runs.rows * width + runs.starts
    own = np.searchsorted(run_begins, begins, side="right")[:, None] - 1
    inside = (found >= run_begins[own]) & (found < (run_begins + runs.sizes)[own])
    found = np.unique(found[inside])
    before = np.searchsorted(begins, found, side="right") - 1
    covered = (before >= 0) & (found < (begins + blanks.sizes)[before])
    rows, columns = np.divmod(found[~covered], width)
    order = shuffled(rows, chance.stream(Purpose.CONTEXT_MASK, rows, columns))
    rows, columns = rows[order], columns[order]
    taken = sums_within(rows, np.ones_like(rows)) <= numbers[rows]
    return Places(rows[taken], columns[taken])
