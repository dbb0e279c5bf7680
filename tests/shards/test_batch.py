import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.batch import read_batch
from shards.errors import DamageError
from shards.reader import Shard
from shards.windows import WindowSpec, causal_windows, glm_windows, num_windows
from tests.shards.memory import CLS, EOS, FIRST, PAD, VOCABULARY, numbered
from tests.shards.windows import Window, read_window

GLM = WindowSpec(kind="glm", length=12, slack=0, num_cls=2)
CAUSAL = causal_windows(6)


def read(given_shard: Shard, number: int, spec: WindowSpec, phase: int = 0) -> Window:
    return read_window(given_shard, number, spec=spec, vocabulary=VOCABULARY, phase=phase)


def at(*offsets: int) -> list[int]:
    """The tokens of a numbered shard at these offsets."""
    return [FIRST + offset for offset in offsets]


def test_a_glm_window() -> None:
    result = read(numbered([4, 3, 2, 9]), 0, GLM)
    assert result.tokens.tolist() == [
        *[CLS, *at(0, 1, 2), EOS, CLS, *at(4, 5), EOS],
        *[*at(7), EOS, *at(9, 10, 11)],  # the third piece begins without [CLS]
    ]
    assert result.loss_mask.tolist() == [i not in (0, 5) for i in range(14)]
    assert result.targets is None
    assert result.piece_starts.tolist() == [0, 5, 9, 11]
    assert result.piece_rows.tolist() == [0, 1, 2, 3]


def test_a_glm_window_within_a_document_begins_with_cls() -> None:
    result = read(numbered([4, 3, 2, 9]), 1, GLM)
    assert result.tokens.tolist() == [CLS, *at(12, 13, 14, 15, 16), EOS]
    assert result.piece_rows.tolist() == [3]


def test_a_glm_window_goes_round_the_ring() -> None:
    result = read(numbered([4, 3, 2, 9]), 1, GLM, phase=4)
    assert result.tokens.tolist() == [CLS, *at(16), EOS, CLS, *at(0, 1, 2), EOS]
    assert result.piece_rows.tolist() == [3, 0]


def test_prompts_carry_no_loss_in_a_glm_window() -> None:
    result = read(numbered([4, 9], prompts=[2, 7]), 0, GLM)
    assert result.loss_mask.tolist() == [*[False] * 3, True, True, *[False] * 8, True]
    split = read(numbered([4, 9], prompts=[2, 7]), 0, WindowSpec(kind="glm", length=8), phase=8)
    assert split.tokens.tolist() == [*at(8, 9, 10, 11), EOS, *at(0, 1, 2)]
    assert split.loss_mask.tolist() == [*[False] * 3, True, True, False, False, True]


def test_removed_documents_are_left_out_of_a_glm_window() -> None:
    whole, less = numbered([4, 3, 2, 9]), numbered([4, 3, 2, 9], removed=[0, 2])
    result = read(less, 0, GLM)
    assert result.tokens.tolist() == [CLS, *at(4, 5), EOS, CLS, *at(9, 10, 11)]
    assert result.piece_rows.tolist() == [1, 3]
    assert read(less, 1, GLM).tokens.tolist() == read(whole, 1, GLM).tokens.tolist()
    assert num_windows(less.entry.tokens, 12) == num_windows(whole.entry.tokens, 12)


@pytest.mark.parametrize("spec", [GLM, CAUSAL])
def test_a_window_may_hold_nothing(spec: WindowSpec) -> None:
    result = read(numbered([4, 3], removed=[0, 1]), 0, spec)
    for array in (result.tokens, result.loss_mask, result.piece_starts, result.piece_rows):
        assert array.tolist() == []
    batch = read_batch(
        [numbered([4, 3], removed=[0, 1])], [0], phases=[0], spec=spec, vocabulary=VOCABULARY
    )
    assert batch.lengths.tolist() == [0]
    assert not batch.loss_mask.any()


def test_a_causal_window() -> None:
    result = read(numbered([4, 3, 2, 9]), 0, CAUSAL)
    assert result.tokens.tolist() == [*at(0, 1, 2), EOS, *at(4, 5)]
    assert result.targets.tolist() == [*at(1, 2), EOS, *at(4, 5), EOS]
    assert result.loss_mask.all()
    assert result.piece_starts.tolist() == [0, 4]
    assert result.piece_rows.tolist() == [0, 1]


def test_the_last_causal_window_is_short_and_ends_at_the_first_token() -> None:
    result = read(numbered([4, 4]), 1, CAUSAL)
    assert result.tokens.tolist() == [*at(6), EOS]
    assert result.targets.tolist() == [EOS, *at(0)]
    turned = read(numbered([4, 4]), 0, CAUSAL, phase=5)
    assert turned.tokens.tolist() == [*at(5, 6), EOS, *at(0, 1, 2)]
    assert turned.targets.tolist() == [*at(6), EOS, *at(0, 1, 2), EOS]


def test_targets_in_a_prompt_carry_no_loss() -> None:
    result = read(numbered([4, 9], prompts=[2, 3]), 0, CAUSAL)
    assert result.targets.tolist() == [*at(1, 2), EOS, *at(4, 5, 6)]
    assert result.loss_mask.tolist() == [False, True, True, False, False, False]


@pytest.mark.parametrize(
    ("removed", "tokens", "targets", "loss"),
    [
        ([0], at(4, 5), [*at(5), EOS], [True, True]),
        ([1], [*at(0, 1, 2), EOS], [*at(1, 2), EOS, PAD], [True, True, True, False]),
        ([2], [*at(0, 1, 2), EOS, *at(4, 5)], [*at(1, 2), EOS, *at(4, 5), EOS], [True] * 6),
    ],
)
def test_removed_documents_are_neither_token_nor_target(
    removed: Any, tokens: Any, targets: list[int], loss: list[bool]
) -> None:
    result = read(numbered([4, 3, 9], removed=removed), 0, CAUSAL)
    assert result.tokens.tolist() == tokens
    assert result.targets.tolist() == targets
    assert result.loss_mask.tolist() == loss


def test_a_removed_target_behind_the_window() -> None:
    result = read(numbered([6, 9], removed=[1]), 0, CAUSAL)
    assert result.tokens.tolist() == [*at(0, 1, 2, 3, 4), EOS]
    assert result.loss_mask.tolist() == [*[True] * 5, False]


def test_glm_batches_are_padded_to_a_multiple_of_64() -> None:
    given_shard = numbered([150, 90, 60])
    spec = glm_windows(192, slack=0)  # 189 tokens and 3 [CLS]
    assert spec.positions == 192
    whole = read_batch([given_shard] * 2, [0, 1], phases=[0, 0], spec=spec, vocabulary=VOCABULARY)
    assert whole.tokens.shape == whole.loss_mask.shape == (2, 192)
    assert whole.lengths.tolist() == [191, 113]
    assert whole.tokens[1, 113:].tolist() == [PAD] * 79
    assert not whole.loss_mask[1, 113:].any()
    short = read_batch([given_shard], [1], phases=[0], spec=spec, vocabulary=VOCABULARY)
    assert short.tokens.shape == (1, 128)
    assert short.tokens[0].tolist() == whole.tokens[1, :128].tolist()


def test_sequences_end_at_documents_and_padding() -> None:
    given_shard = numbered([4, 3, 2])
    both: dict[str, Any] = {"phases": [0, 0], "spec": CAUSAL, "vocabulary": VOCABULARY}
    batch = read_batch([given_shard] * 2, [0, 1], **both, boundaries=True)
    assert batch.cu_seqlens().tolist() == [0, 4, 6, 7, 9, 12]
    assert batch.cu_seqlens().dtype == np.int32
    assert batch.pieces.windows.tolist() == [0, 0, 1, 1]
    assert batch.pieces.starts.tolist() == [0, 4, 0, 1]
    assert batch.pieces.rows.tolist() == [0, 1, 1, 2]
    with pytest.raises(ValueError, match="boundaries=True"):
        read_batch([given_shard] * 2, [0, 1], **both).cu_seqlens()


def test_a_batch_without_rows() -> None:
    for spec in (GLM, CAUSAL):
        batch = read_batch([], [], phases=[], spec=spec, vocabulary=VOCABULARY)
        assert len(batch.tokens) == len(batch.lengths) == 0


@pytest.mark.parametrize("boundaries", [False, True])
@pytest.mark.parametrize("windows", [[0, 3], [0, -2]])
def test_no_such_window(windows: list[int], boundaries: bool) -> None:
    with pytest.raises(IndexError, match=re.escape(f"no window {windows[1]}")):
        read_batch(
            [numbered([9, 9])] * 2,
            windows,
            phases=[0, 0],
            spec=CAUSAL,
            vocabulary=VOCABULARY,
            boundaries=boundaries,
        )


LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=12)


@given(shards=st.lists(LENGTHS, min_size=1, max_size=4), data=st.data(), length=st.integers(1, 40))
def test_the_quick_way_reads_what_the_slow_one_does(
    shards: list[list[int]], data: st.DataObject, length: int
) -> None:
    spec = causal_windows(length)
    rows = [numbered(lengths) for lengths in shards]
    windows = [
        data.draw(st.integers(0, num_windows(row.entry.tokens, spec.stride) - 1)) for row in rows
    ]
    phases = [data.draw(st.integers(0, 99)) for _ in rows]
    both: dict[str, Any] = {"phases": phases, "spec": spec, "vocabulary": VOCABULARY}
    quick = read_batch(rows, windows, **both)
    slow = read_batch(rows, windows, **both, boundaries=True)
    assert quick.pieces is None
    for name in ("tokens", "targets", "loss_mask", "lengths"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name), err_msg=name)


@given(
    lengths=LENGTHS,
    removed=st.sets(st.integers(0, 11)),
    spec=st.sampled_from([glm_windows(64), glm_windows(128, slack=20), GLM, causal_windows(17)]),
    phase=st.integers(0, 2**63),
)
def test_every_token_once_unless_removed(
    lengths: list[int], removed: Any, spec: WindowSpec, phase: int
) -> None:
    removed = sorted(row for row in removed if row < len(lengths))
    given_shard = numbered(lengths, removed=removed)
    tokens: Counter[int] = Counter()
    for i in range(num_windows(sum(lengths), spec.stride)):
        result = read(given_shard, i, spec, phase)
        assert len(result.tokens) <= spec.positions
        tokens.update(result.tokens[result.tokens != CLS].tolist())
    kept = [row for row in range(len(lengths)) if row not in removed]
    assert tokens == Counter(token for row in kept for token in given_shard[row].tolist())


def test_a_shard_without_prompts_and_removals_is_plain() -> None:
    assert numbered([3, 3]).plain
    assert not numbered([3, 3], prompts=[0, 1]).plain
    assert not numbered([3, 3], removed=[1]).plain
    assert numbered([3, 3]).documents["prompt_tokens"].type == pa.int32()


ANYWHERE = st.integers(-3, 400) | st.integers(-(2**63), 2**63 - 1)
SPECS = st.sampled_from([glm_windows(64), glm_windows(128, slack=20), GLM, causal_windows(17)])


def errors_of(damaged: Shard, whole: Shard, spec: WindowSpec, phase: int) -> list[str]:
    """Return the errors of all windows; those without one must be what they were."""
    errors = []
    for i in range(num_windows(whole.entry.tokens, spec.stride)):
        try:
            result = read(damaged, i, spec, phase)
        except DamageError as error:
            errors.append(str(error))
            continue
        for name, array in vars(read(whole, i, spec, phase)).items():
            np.testing.assert_array_equal(getattr(result, name), array, err_msg=name)
    return errors


def changed(whole: Shard, name: str, row: int, value: int) -> Shard:
    """Return a shard with another number in one column of a document."""
    if name == "offset":
        offsets = whole.offsets.copy()
        offsets[row] = value
        return replace(whole, offsets=offsets)
    column = whole.documents[name].to_numpy().copy()
    column[row] = np.int64(value).astype(np.int32)
    columns = {other: whole.documents[other] for other in whole.documents.column_names}
    return replace(whole, documents=pa.table({**columns, name: pa.array(column)}))


@given(lengths=LENGTHS, spec=SPECS, phase=st.integers(0, 99), data=st.data())
def test_a_damaged_document_is_an_error_and_never_another_window(
    lengths: list[int], spec: WindowSpec, phase: int, data: st.DataObject
) -> None:
    whole = numbered(lengths, prompts=[data.draw(st.integers(0, n - 1)) for n in lengths])
    name = data.draw(st.sampled_from(["offset", "tokens"]))
    row = data.draw(st.integers(0, len(lengths) - 1))
    damaged = changed(whole, name, row, data.draw(ANYWHERE))
    same = np.array_equal(damaged.offsets, whole.offsets) and damaged.documents == whole.documents
    errors = errors_of(damaged, whole, spec, phase)
    assert bool(errors) != same
    for error in errors:
        assert re.match(
            r"memory/g/s/0\.arrow is damaged: document \d+ begins .*python -m shards verify memory",
            error,
        )


@given(lengths=LENGTHS, spec=SPECS, phase=st.integers(0, 99), data=st.data())
def test_a_damaged_token_is_an_error_and_never_another_window(
    lengths: list[int], spec: WindowSpec, phase: int, data: st.DataObject
) -> None:
    whole = numbered(lengths)
    tokens = whole.tokens.copy()
    token = data.draw(st.sampled_from([1 << 16, 2**31 - 1, -1, -(2**31)]))
    tokens[data.draw(st.integers(0, len(tokens) - 1))] = token
    errors = errors_of(replace(whole, tokens=tokens), whole, spec, phase)
    assert errors
    for error in errors:
        assert error.startswith(
            f"memory/g/s/0.bin is damaged: it holds token {token}, and ids go from 0 to 65535. "
        )


@pytest.mark.parametrize("prompt", [-1, 4, 2**31 - 1])
def test_a_prompt_that_cannot_be(prompt: int) -> None:
    damaged = numbered([9, 4], prompts=[0, prompt])
    with pytest.raises(DamageError, match=f"document 1 has 4 tokens, of which {prompt} are its p"):
        read(damaged, 0, glm_windows(64))


@pytest.mark.parametrize("boundaries", [False, True])
def test_the_shard_of_a_damaged_token_is_named(boundaries: bool) -> None:
    rows = [numbered([20]), numbered([20])]
    tokens = rows[1].tokens.copy()
    tokens[3] = 1 << 16
    other = replace(rows[1].entry, path="g/s/1")
    rows[1] = replace(rows[1], tokens=tokens, entry=other)
    with pytest.raises(DamageError, match=r"^memory/g/s/1\.bin is damaged: it holds token 65536"):
        read_batch(
            rows,
            [0, 0],
            phases=[0, 0],
            spec=CAUSAL,
            vocabulary=VOCABULARY,
            boundaries=boundaries,
        )
