import numpy as np
import pytest

from tests.trainer.texts import (
    CLS,
    EOP,
    EOS,
    GMASK,
    MASK,
    SOP,
    SPECIAL_TOKENS,
    keys_of,
)
from trainer.blanks.blocks import Blanks, Rows, assemble
from trainer.blanks.sample_rng import SampleRng
from trainer.blanks.text import Spans, TextRows

A, B, C, D, E, F = range(20, 26)
TOKENS = [CLS, A, B, C, D, E, F, EOS]


def rows_of(
    *spans: tuple[int, int], is_end: bool = False, mask: int = MASK, first: int = 0
) -> Rows:
    """The text `[CLS] a b c d e f eos` with blanks, given as start and size; b is a prompt."""
    text = TextRows(
        tokens=np.array([TOKENS]),
        loss_mask=~np.isin([TOKENS], [CLS, B]),
        lengths=np.array([8]),
        pieces=np.array([[0, 0, 0, 0, 1, 1, 1, 1]]),
    )
    table = np.array(spans, np.int64).reshape(-1, 2)
    blanks = Blanks(
        Spans(np.zeros(len(table), np.int64), table[:, 0], table[:, 1]),
        np.full(len(table), is_end),
        np.array([mask]),
    )
    rng = SampleRng(keys_of(1, first=first))
    return assemble(text, blanks, SPECIAL_TOKENS, inputs=text.tokens, rng=rng)


def test_the_drawn_example() -> None:
    (first,) = [i for i in range(9) if rows_of((2, 2), (5, 1), first=i).tokens[0, 8] == E][:1]
    rows = rows_of((2, 2), (5, 1), first=first)
    assert rows.tokens[0, :13].tolist() == [CLS, A, MASK, D, MASK, F, EOS, SOP, E, SOP, B, C, EOS]
    assert rows.targets[0, 7:12].tolist() == [E, EOP, B, C, EOP]
    assert rows.position_ids[0, 0, :12].tolist() == [0, 1, 2, 3, 4, 5, 6, 4, 4, 2, 2, 2]
    assert rows.position_ids[0, 1, :12].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 3]
    assert np.flatnonzero(rows.loss_mask[0]).tolist() == [7, 8, 10, 11]  # b carries none
    assert (int(rows.sep[0]), int(rows.lengths[0])) == (7, 12)
    assert rows.tokens.shape == (1, 64)
    assert rows.pieces is not None
    assert rows.pieces[0, :13].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, -1]


def test_the_end_of_a_text() -> None:
    rows = rows_of((4, 4), is_end=True, mask=GMASK)
    assert rows.tokens[0, :10].tolist() == [CLS, A, B, C, GMASK, SOP, D, E, F, EOS]
    assert rows.targets[0, 5:9].tolist() == [D, E, F, EOS]
    assert rows.position_ids[0, 0, :9].tolist() == [0, 1, 2, 3, 4, 4, 4, 4, 4]
    assert rows.position_ids[0, 1, :9].tolist() == [0, 0, 0, 0, 0, 1, 2, 3, 4]
    assert np.flatnonzero(rows.loss_mask[0]).tolist() == [5, 6, 7, 8]
    assert int(rows.lengths[0]) == 9


@pytest.mark.parametrize(
    ("spans", "sep"), [([], 8), ([(1, 1)], 8), ([(1, 6)], 3), ([(1, 3), (4, 3)], 4)]
)
def test_sizes(spans: list[tuple[int, int]], sep: int) -> None:
    """Blanks of one token, of all, and two beside each other."""
    rows = rows_of(*spans)
    assert int(rows.sep[0]) == sep
    assert int(rows.lengths[0]) == sep + sum(size + 1 for _, size in spans)
    assert (rows.tokens[0, :sep] == MASK).sum() == len(spans)


def test_blocks_come_in_any_order() -> None:
    orders = {
        tuple(np.argsort(rows_of((1, 1), (3, 1), (5, 1), first=i).position_ids[0, 0, [8, 10, 12]]))
        for i in range(60)
    }
    assert len(orders) == 6
