import numpy as np

from tests.trainer.texts import (
    CLS,
    EOP,
    EOS,
    MASK,
    SOP,
    SPECIAL_TOKENS,
    keys_of,
)
from trainer.blanks.blocks import Blanks, assemble
from trainer.blanks.sample_rng import SampleRng
from trainer.blanks.text import Spans, TextRows

A, B, C, D, E, F = range(20, 26)
TOKENS = [CLS, A, B, C, D, E, F, EOS]


def test_the_drawn_example() -> None:
    """The text `[CLS] a b c d e f eos`, of which b is a prompt."""
    text = TextRows(
        tokens=np.array([TOKENS]),
        loss_mask=~np.isin([TOKENS], [CLS, B]),
        lengths=np.array([8]),
        pieces=np.array([[0, 0, 0, 0, 1, 1, 1, 1]]),
    )
    blanks = Blanks(
        Spans(np.zeros(2, np.int64), np.array([2, 5]), np.array([2, 1])),
        np.array([False, False]),
        np.array([MASK]),
        np.array([0]),
    )
    made = (
        assemble(
            text,
            blanks,
            SPECIAL_TOKENS,
            inputs=text.tokens,
            sources=np.array([0]),
            rng=SampleRng(keys_of(1, first=first)),
        )
        for first in range(9)
    )
    rows = next(rows for rows in made if rows.tokens[0, 8] == E)
    assert rows.tokens[0, :13].tolist() == [CLS, A, MASK, D, MASK, F, EOS, SOP, E, SOP, B, C, EOS]
    assert rows.targets[0, 7:12].tolist() == [E, EOP, B, C, EOP]
    assert rows.position_ids[0, 0, :12].tolist() == [0, 1, 2, 3, 4, 5, 6, 4, 4, 2, 2, 2]
    assert rows.position_ids[0, 1, :12].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 3]
    assert np.flatnonzero(rows.loss_mask[0]).tolist() == [7, 8, 10, 11]  # b carries none
    assert (int(rows.sep[0]), int(rows.lengths[0])) == (7, 12)
    assert rows.tokens.shape == (1, 64)
    assert rows.pieces is not None
    assert rows.pieces[0, :13].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, -1]
