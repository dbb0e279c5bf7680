"""Guarantee: Removed documents are padding from then on."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import DamageError
from shards.reader import Shard
from shards.sampling.batch import read_batch
from shards.sampling.windows import (
    WindowSpec,
    causal_windows,
    glm_windows,
    num_windows,
    window_span,
)
from tests.shards.memory import CLS, PAD, VOCABULARY, numbered
from tests.shards.windows import Window, read_window

GLM = WindowSpec(kind="glm", length=12, slack=0, num_cls=2)
CAUSAL = causal_windows(6)
LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=12)
SPECS = st.sampled_from(
    [glm_windows(64), glm_windows(128, slack=20), GLM, CAUSAL, causal_windows(17)]
)


def read(given_shard: Shard, number: int, spec: WindowSpec, phase: int = 0) -> Window:
    return read_window(given_shard, number, spec=spec, vocabulary=VOCABULARY, phase=phase)


def one_by_one(whole: Shard, number: int, spec: WindowSpec, phase: int) -> dict[str, list[int]]:
    """Return a window, read token by token from the first to the last."""
    begin, end = window_span(whole, number, spec=spec, vocabulary=VOCABULARY, phase=phase)
    size = len(whole.tokens)
    row_of = np.repeat(np.arange(len(whole)), whole.lengths)
    within = np.arange(size) - whole.offsets[row_of]
    has_loss = ~np.isin(row_of, whole.removed) & (within >= whole.prompts[row_of])
    found: dict[str, list[int]] = {
        name: [] for name in ("tokens", "targets", "loss_mask", "span_starts", "span_rows")
    }
    kept = [at % size for at in range(begin, end) if row_of[at % size] not in whole.removed]
    is_causal, before = spec.kind == "causal", (-1, -1)
    for place, after in pairwise([*kept, end % size]):
        row = int(row_of[place])
        if before != (row, place - 1):
            found["span_starts"].append(len(found["tokens"]))
            found["span_rows"].append(row)
            if len(found["span_rows"]) <= spec.num_cls:
                found["tokens"].append(CLS)
                found["loss_mask"].append(False)
        before = row, place
        found["tokens"].append(int(whole.tokens[place]))
        found["loss_mask"].append(bool(has_loss[after if is_causal else place]))
        if is_causal:
            is_gone = row_of[after] in whole.removed
            found["targets"].append(PAD if is_gone else int(whole.tokens[after]))
    return found


@given(
    lengths=LENGTHS,
    spec=SPECS,
    phase=st.integers(0, 99) | st.integers(0, 2**63),
    data=st.data(),
)
def test_windows_are_what_they_are_token_by_token(
    lengths: list[int], spec: WindowSpec, phase: int, data: st.DataObject
) -> None:
    prompts = [data.draw(st.integers(0, length - 1)) for length in lengths]
    gone = sorted(data.draw(st.sets(st.integers(0, len(lengths) - 1))))
    whole = numbered(lengths, prompts=prompts, removed=gone)
    for number in range(num_windows(sum(lengths), spec.stride)):
        expected = one_by_one(whole, number, spec, phase)
        window = read(whole, number, spec, phase)
        found = {name: array.tolist() for name, array in vars(window).items() if array is not None}
        assert {"targets": [], **found} == expected
        assert len(window.tokens) <= spec.positions


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
    assert quick.spans is None
    for name in ("tokens", "targets", "loss_mask", "lengths"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name), err_msg=name)


def test_sequences_end_at_documents_and_padding() -> None:
    given_shard = numbered([4, 3, 2])
    both: dict[str, Any] = {"phases": [0, 0], "spec": CAUSAL, "vocabulary": VOCABULARY}
    batch = read_batch([given_shard] * 2, [0, 1], **both, boundaries=True)
    assert batch.cu_seqlens().tolist() == [0, 4, 6, 7, 9, 12]
    assert batch.cu_seqlens().dtype == np.int32
    assert batch.spans.windows.tolist() == [0, 0, 1, 1]
    assert batch.spans.starts.tolist() == [0, 4, 0, 1]
    assert batch.spans.rows.tolist() == [0, 1, 1, 2]
    with pytest.raises(ValueError, match="boundaries=True"):
        read_batch([given_shard] * 2, [0, 1], **both).cu_seqlens()


ANYWHERE = st.integers(-3, 400) | st.integers(-(2**63), 2**63 - 1)


def errors_of(damaged: Shard, whole: Shard, spec: WindowSpec, phase: int) -> list[str]:
    """Return the errors of all windows, checking that a window without an error is unchanged."""
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
    """Return a shard in which one column of a document has a different number."""
    if name == "offset":
        offsets = whole.offsets.copy()
        offsets[row] = value
        return replace(whole, offsets=offsets)
    column = whole.documents[name].to_numpy().copy()
    column[row] = np.int64(value).astype(np.int32)
    columns = {other: whole.documents[other] for other in whole.documents.column_names}
    return replace(whole, documents=pa.table({**columns, name: pa.array(column)}))


@given(lengths=LENGTHS, spec=SPECS, phase=st.integers(0, 99), data=st.data())
def test_damage_is_an_error_and_never_another_window(
    lengths: list[int], spec: WindowSpec, phase: int, data: st.DataObject
) -> None:
    whole = numbered(lengths, prompts=[data.draw(st.integers(0, n - 1)) for n in lengths])
    name = data.draw(st.sampled_from(["offset", "tokens", "token"]))
    if name == "token":
        tokens = whole.tokens.copy()
        token = data.draw(st.sampled_from([1 << 16, 2**31 - 1, -1, -(2**31)]))
        tokens[data.draw(st.integers(0, len(tokens) - 1))] = token
        damaged = replace(whole, tokens=tokens)
        told = rf"0\.bin is damaged: it contains token {token}, but ids go from 0 to 65535\. "
    else:
        row = data.draw(st.integers(0, len(lengths) - 1))
        damaged = changed(whole, name, row, data.draw(ANYWHERE))
        told = r"0\.arrow is damaged: document \d+ begins .*python -m shards verify memory"
    errors = errors_of(damaged, whole, spec, phase)
    same = np.array_equal(damaged.offsets, whole.offsets) and damaged.documents == whole.documents
    assert bool(errors) != (same and name != "token")
    assert all(re.match(rf"memory/g/s/{told}", error) for error in errors)


@pytest.mark.parametrize("prompt", [-1, 4, 2**31 - 1])
def test_a_prompt_that_cannot_be(prompt: int) -> None:
    damaged = numbered([9, 4], prompts=[0, prompt])
    with pytest.raises(DamageError, match=f"document 1 has 4 tokens, of which {prompt} are its p"):
        read(damaged, 0, glm_windows(64))
