from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.batch import Batch
from shards.errors import UserError
from tests.trainer.texts import (
    CLS,
    DBLOCK,
    EOP,
    EOS,
    GMASK,
    MASK,
    PLAIN,
    SENTENCE_ENDS,
    SMASK,
    SOP,
    SPECIAL,
    Document,
    batches,
    make,
    maker,
    read,
    windows,
)
from trainer.blanks.blanks import BlankMaker, BlankOptions, Task

SPANS = replace(PLAIN, bert_prob=1, sentence_prob=0)
SENTENCES = replace(PLAIN, bert_prob=0, sentence_prob=1)
SUFFIX = replace(PLAIN, bert_prob=0, sentence_prob=0, infill_prob=0)
INFILL = replace(SUFFIX, infill_prob=1)
PACKED = [Document(40, 10), Document(6), Document(1), Document(50), Document(30, 0, True)]
OBJECTIVES = st.sampled_from([PLAIN, SPANS, SENTENCES, SUFFIX, INFILL])
some = settings(max_examples=40)


def runs(batch: Batch, i: int) -> list[tuple[int, int]]:
    """Begin and end of what a blank may cover, found token by token."""
    free = batch.loss_mask[i] & ~np.isin(batch.tokens[i], [EOS, CLS])
    free_runs: list[tuple[int, int]] = []
    for j in np.flatnonzero(free).tolist():
        if free_runs and free_runs[-1][1] == j:
            free_runs[-1] = (free_runs[-1][0], j + 1)
        else:
            free_runs.append((j, j + 1))
    return free_runs


@some
@given(batches(), OBJECTIVES, st.integers(0, 99))
def test_invariants_of_a_row(batch: Batch, options: BlankOptions, first: int) -> None:
    made = make(batch, options, first=first)
    width = made.tokens.shape[1]
    assert width % 64 == 0
    assert width <= maker(options).max_length
    for i, length in enumerate(batch.lengths.tolist()):
        row = read(made, i)
        sep, end = int(made.sep[i]), int(made.lengths[i])
        # The blanks put back make the text, token by token.
        assert row.text == batch.tokens[i, :length].tolist()
        # Part A: positions count up, nothing is predicted, a mask for each block.
        assert made.position_ids[i, 0, :sep].tolist() == list(range(sep))
        assert not made.position_ids[i, 1, :sep].any()
        assert not made.loss_mask[i, :sep].any()
        mask = [MASK, SMASK, GMASK][made.task[i]]
        masks = np.flatnonzero(made.tokens[i, :sep] == mask).tolist()
        assert sorted(block.positions[0] for block in row.blocks) == masks
        # Part B: sop to eop, each at its mask's position, inputs one behind the targets.
        for block in row.blocks:
            assert block.inputs == block.targets[:-1]
            assert len(set(block.positions)) == 1
            assert block.places == list(range(1, len(block.places) + 1))
        covered, num_blanks = sum(block.size for block in row.blocks), len(row.blocks)
        assert sep == length - covered + num_blanks
        assert end - sep == sum(len(block.targets) for block in row.blocks)
        # Padding.
        assert not made.loss_mask[i, end:].any()
        assert not made.position_ids[i, :, end:].any()
        assert set(made.tokens[i, end:].tolist()) <= {EOS}
        # All positions are ones that the model has.
        assert made.position_ids[i, 0].max() < 128
        assert made.position_ids[i, 1].max() <= 128


@some
@given(batches(), OBJECTIVES, st.integers(0, 99))
def test_places_and_documents(batch: Batch, options: BlankOptions, first: int) -> None:
    made = make(batch, options, first=first, isolate=True)
    assert made.pieces is not None
    assert batch.pieces is not None
    for i, length in enumerate(batch.lengths.tolist()):
        row, end = read(made, i), int(made.lengths[i])
        # Blanks lie in text that may be predicted; where there is such text, there is one.
        free_runs = runs(batch, i)
        assert bool(row.blocks) == bool(free_runs)
        for block in row.blocks:
            last = block.start + block.size
            if block.targets[-1] == EOP:
                assert any(a <= block.start and last <= b for a, b in free_runs)
                assert all(block.loss)
            else:
                assert made.task[i] == Task.GENERATION
                assert last == length
        # A token is numbered by its document, sop and eop by that of their blank.
        starts = batch.pieces.starts[batch.pieces.windows == i]
        numbers = [int((starts <= j).sum()) - 1 for j in range(length)]
        hidden = {block.start + k for block in row.blocks for k in range(1, block.size)}
        expected = [number for j, number in enumerate(numbers) if j not in hidden]
        for block in row.blocks:
            expected += [numbers[block.start]]
            expected += [numbers[block.start + k] for k in range(len(block.inputs))]
        assert made.pieces[i, :end].tolist() == expected
        assert set(made.pieces[i, end:].tolist()) <= {-1}


@some
@given(batches(), st.integers(0, 99))
def test_token_spans(batch: Batch, first: int) -> None:
    made = make(batch, SPANS, first=first)
    assert (made.task == Task.SPANS).all()
    for i in range(len(batch.lengths)):
        free_runs = runs(batch, i)
        spans = sorted((b.start, b.start + b.size) for b in read(made, i).blocks)
        assert all(end < start for (_, end), (start, _) in pairwise(spans))
        text = batch.tokens[i, : batch.lengths[i]]
        prompts = int((~batch.loss_mask[i, : len(text)] & (text != CLS)).sum())
        budget = max(1, int(0.15 * (len(text) - prompts)))
        covered = sum(end - start for start, end in spans)
        assert covered < budget + 39
        assert len(spans) <= budget
        if covered < budget:  # then no run has room for one more token and the gap before it
            for a, b in free_runs:
                assert sum(end - start + 1 for start, end in spans if a <= start < b) >= b - a


@some
@given(batches(), st.integers(0, 99))
def test_sentences(batch: Batch, first: int) -> None:
    made = make(batch, SENTENCES, first=first)
    for i in range(len(batch.lengths)):
        row = read(made, i)
        if made.task[i] == Task.SPANS:
            inside = [batch.tokens[i, a:b] for a, b in runs(batch, i)]
            assert not any(SENTENCE_ENDS[tokens].any() for tokens in inside)
            continue
        whole = {a for a, _ in runs(batch, i)}
        for block in row.blocks:
            *others, last = block.targets[:-1]
            assert SENTENCE_ENDS[last]
            assert not SENTENCE_ENDS[others].any()
            assert block.start in whole or SENTENCE_ENDS[row.text[block.start - 1]]


@some
@given(batches(), st.integers(0, 99))
def test_generated_ends(batch: Batch, first: int) -> None:
    made = make(batch, SUFFIX, first=first)
    for i, length in enumerate(batch.lengths.tolist()):
        if not runs(batch, i):
            continue
        (block,) = read(made, i).blocks
        assert made.lengths[i] == length + 1
        assert block.loss == batch.loss_mask[i, block.start : length].tolist()
        assert block.loss[0]
        assert block.size == len(block.targets)
        counted = batch.loss_mask[i, :length]
        # Where the text may be predicted throughout, a quarter of it or more is.
        if counted[1:].all() and length > 2:
            assert int(0.25 * length) <= block.size <= max(length - 2, 1)


@some
@given(batches(), st.integers(0, 99))
def test_generated_runs(batch: Batch, first: int) -> None:
    made = make(batch, INFILL, first=first)
    for i, length in enumerate(batch.lengths.tolist()):
        free_runs = runs(batch, i)
        if not free_runs:
            continue
        (block,) = read(made, i).blocks
        is_inside = block.targets[-1] == EOP
        assert is_inside == (len(free_runs) == 1)
        if is_inside:
            (run,) = free_runs
            least = min(max(1, int(0.25 * length)), max(1, length - 2), run[1] - run[0])
            assert least <= block.size <= max(1, length - 2)


def test_dblock_hides_inputs_and_no_targets() -> None:
    batch = windows([PACKED] * 400)
    still = replace(PLAIN, bert_prob=0.6, sentence_prob=0.2)
    made = make(batch, replace(still, block_mask_prob=0.1), positions=256)
    plain = make(batch, still, positions=256)
    hidden = made.tokens == DBLOCK
    assert np.array_equal(np.where(hidden, DBLOCK, plain.tokens), made.tokens)
    assert np.array_equal(plain.targets, made.targets)
    in_blanks = made.loss_mask & (plain.tokens != SOP) & (made.task == Task.SPANS)[:, None]
    assert not hidden[~in_blanks].any()
    assert hidden.sum() / in_blanks.sum() == pytest.approx(0.1, abs=0.01)


def test_dblock_near_blanks() -> None:
    batch = windows([PACKED] * 200)
    made = make(batch, replace(SPANS, context_mask_ratio=0.04), positions=256)
    plain = make(batch, SPANS, positions=256)
    assert np.array_equal(made.targets, plain.targets)
    for i, sep in enumerate(made.sep.tolist()):
        hidden = np.flatnonzero(made.tokens[i] == DBLOCK)
        masks = np.flatnonzero(made.tokens[i, :sep] == MASK)
        assert len(hidden) == int(0.04 * batch.lengths[i])
        assert (hidden < sep).all()
        assert (np.abs(hidden[:, None] - masks).min(axis=1) <= 3).all()
        assert not np.isin(plain.tokens[i, hidden], [EOS, CLS, MASK]).any()


def test_the_longest_row() -> None:
    """One-token runs make one-token blanks, the most that there can be."""
    batch = windows([[Document(2)] * 60] * 20, num_cls=8)
    made = make(batch, SPANS)
    assert made.lengths.max() == 128 + 2 * int(0.15 * 128)
    assert maker(SPANS).max_length == 192


def maker_with(special: dict[str, int], options: BlankOptions) -> BlankMaker:
    return BlankMaker(special, options, max_positions=64, sentence_ends=SENTENCE_ENDS)


def test_a_special_token_is_missing() -> None:
    less = {key: i for key, i in SPECIAL.items() if key not in ("smask", "eop")}
    message = r"has no \[sMASK\] and eop, which these blanks need; it has cls, dblock, "
    with pytest.raises(UserError, match=message):
        maker_with(less, SENTENCES)


def test_two_special_tokens_of_one_id() -> None:
    """GLM's Chinese vocabulary without --fix-command-token has this."""
    same = {**SPECIAL, "gmask": EOP}
    with pytest.raises(UserError, match=r"\[gMASK\] and eop the same id 6"):
        maker_with(same, SUFFIX)
    maker_with(same, SPANS)  # where only one of them is needed


@pytest.mark.parametrize(
    ("options", "roles"),
    [
        (SPANS, "mask"),
        (SENTENCES, "mask smask"),
        (SUFFIX, "gmask"),
        (BlankOptions(), "mask smask gmask dblock"),
        (replace(PLAIN, sentence_prob=0.5, context_mask_ratio=0.1), "mask smask dblock"),
        (BlankOptions(bert_prob=0.7, sentence_prob=0.3, task_mask=False), "mask dblock"),
    ],
)
def test_only_what_is_needed_must_be_there(options: BlankOptions, roles: str) -> None:
    assert options.roles == {*roles.split(), "sop", "eop"}
    maker_with({role: SPECIAL[role] for role in {"eos", *options.roles}}, options)


def test_a_window_longer_than_the_model() -> None:
    with pytest.raises(ValueError, match="a window has 101 tokens, the model 64 positions"):
        make(windows([[Document(100)]]), positions=64)
