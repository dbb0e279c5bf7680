"""Which tokens the model sees as `[dBLOCK]`, in samples of token spans.

Two kinds, both from THUDM/GLM (blocklm_utils.py, make_block_data): tokens of Part B, independently
with one probability (their targets stay), and tokens of Part A near a blank, a share of the text.
"""

from typing import NamedTuple

import numpy as np

from trainer.blanks.sample_rng import Integers, Purpose, SampleRng, happens, shuffled_order
from trainer.blanks.text import Spans, running_sums

_NEAR = np.array([-3, -2, -1, 0, 1, 2])
"""Offsets of the tokens near a blank: from its first token where negative, else from its end. Three
on each side, the reference's context_mask_range."""


class TokenPositions(NamedTuple):
    """Tokens of texts; indexes an array [rows, width]."""

    rows: Integers
    columns: Integers


def noise_in_blanks(blanks: Spans, probability: float, rng: SampleRng) -> TokenPositions:
    """Return tokens of the blanks, each with this probability."""
    owners = np.repeat(np.arange(len(blanks.rows)), blanks.sizes)
    offsets = np.arange(len(owners)) - (np.cumsum(blanks.sizes) - blanks.sizes)[owners]
    rows, columns = blanks.rows[owners], blanks.starts[owners] + offsets
    hit = happens(rng.stream(Purpose.BLOCK_MASK, rows, columns), probability)
    return TokenPositions(rows[hit], columns[hit])


def noise_in_context(
    runs: Spans, blanks: Spans, counts: Integers, rng: SampleRng
) -> TokenPositions:
    """Return tokens near blanks, in the same run as the blank and in no blank themselves.

    Args:
        runs: where the blanks lie.
        blanks: sorted by row, then start.
        counts: by row, how many tokens to return, as far as there are that many.
        rng: the random numbers of the batch.
    """
    # The rows are laid end to end, with more space between them than a blank looks around.
    width = int((runs.starts + runs.sizes).max(initial=0)) + len(_NEAR)
    begins = blanks.rows * width + blanks.starts
    near = begins[:, None] + _NEAR + np.where(_NEAR < 0, 0, blanks.sizes[:, None])
    run_begins = runs.rows * width + runs.starts
    own = np.searchsorted(run_begins, begins, side="right")[:, None] - 1
    inside = (near >= run_begins[own]) & (near < (run_begins + runs.sizes)[own])
    near = np.unique(near[inside])
    before = np.searchsorted(begins, near, side="right") - 1
    covered = (before >= 0) & (near < (begins + blanks.sizes)[before])
    rows, columns = np.divmod(near[~covered], width)
    order = shuffled_order(rows, rng.stream(Purpose.CONTEXT_MASK, rows, columns))
    rows, columns = rows[order], columns[order]
    chosen = running_sums(rows, np.ones_like(rows)) <= counts[rows]
    return TokenPositions(rows[chosen], columns[chosen])
