import numpy as np

from shards.batch import Batch, Pieces
from tests.trainer.texts import CLS, EOS, SPECIAL_TOKENS
from trainer.blanks.text import (
    Spans,
    find_runs,
    group_starts,
    is_special,
    running_sums,
    text_rows_of,
)

BATCH = Batch(
    tokens=np.array([[CLS, 20, 21, EOS, CLS, 22, 23, EOS], [CLS, 24, 25, 26, EOS, 0, 0, 0]]),
    targets=None,
    loss_mask=np.array([[0, 1, 1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 0, 0, 0]], np.bool_),
    lengths=np.array([8, 5]),
    pieces=Pieces(windows=np.array([0, 0, 1]), starts=np.array([0, 4, 0]), rows=np.arange(3)),
)
"""Two documents, 22 being the prompt of the second, and a row of one document."""


def test_runs_hold_no_prompt_and_no_special_token() -> None:
    text = text_rows_of(BATCH, numbered=False)
    runs = find_runs(text, SPECIAL_TOKENS)
    assert runs.rows.tolist() == [0, 0, 1]
    assert runs.starts.tolist() == [1, 6, 1]
    assert runs.sizes.tolist() == [2, 1, 3]
    assert text.pieces is None
    covered = is_special(text, SPECIAL_TOKENS)[runs.rows, runs.starts]
    assert not covered.any()


def test_documents_are_numbered_on_request() -> None:
    pieces = text_rows_of(BATCH, numbered=True).pieces
    assert pieces is not None
    assert pieces[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert pieces[1, :5].tolist() == [0] * 5


def test_spans_of_chosen_rows() -> None:
    spans = Spans(np.array([0, 0, 2]), np.array([1, 6, 3]), np.array([2, 1, 4]))
    chosen = spans.in_rows(np.array([False, True, True]))
    assert [column.tolist() for column in chosen] == [[2], [3], [4]]
    assert spans.in_rows(np.ones(3, np.bool_)) is spans


def test_sums_start_again_with_each_group() -> None:
    groups = np.array([3, 3, 3, 5, 8, 8])
    assert group_starts(groups).tolist() == [0, 3, 4]
    assert running_sums(groups, np.array([1, 0, 2, 7, 4, 4])).tolist() == [1, 1, 3, 7, 4, 8]
    empty = np.array([], np.int64)
    assert running_sums(empty, empty).tolist() == []
