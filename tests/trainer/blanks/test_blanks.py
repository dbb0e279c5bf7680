from collections.abc import Mapping
from itertools import pairwise
from typing import Any

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
    keys_of,
    make,
    maker,
    read,
    windows,
)
from trainer.blanks.blanks import BlankMaker, BlankOptions, Task
from trainer.blanks.blocks import GlmBatch
from trainer.blanks.sample_rng import Integers

SPANS = BlankOptions(bert_prob=1, sentence_prob=0, short_seq_prob=0, block_mask_prob=0)
SENTENCES = BlankOptions(bert_prob=0, sentence_prob=1, short_seq_prob=0, block_mask_prob=0)
SUFFIX = BlankOptions(
    bert_prob=0, sentence_prob=0, infill_prob=0, short_seq_prob=0, block_mask_prob=0
)
INFILL = BlankOptions(
    bert_prob=0, sentence_prob=0, infill_prob=1, short_seq_prob=0, block_mask_prob=0
)
FULL = BlankOptions(
    bert_prob=0.5,
    single_span_prob=0.2,
    short_seq_prob=0.4,
    context_mask_ratio=0.05,
    random_position=True,
)
some = settings(max_examples=40)
PACKED = [Document(40, 10), Document(6), Document(1), Document(50), Document(30, 0, True)]


def arrays(batch: GlmBatch) -> Mapping[str, Integers]:
    return {name: value for name, value in vars(batch).items() if value is not None}


def rows_of(batch: GlmBatch, i: int) -> dict[str, Any]:
    """A row without its padding."""
    end = int(batch.lengths[i])
    return {
        name: value[i, ..., :end].tolist() if value.ndim > 1 else int(value[i])
        for name, value in arrays(batch).items()
        if name != "source"
    }


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
@given(batches(), st.sampled_from([PLAIN, SPANS, SENTENCES, SUFFIX, INFILL]), st.integers(0, 99))
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
@given(batches(), st.sampled_from([PLAIN, SPANS, SENTENCES, INFILL]), st.integers(0, 99))
def test_blanks_lie_in_text_that_may_be_predicted(
    batch: Batch, options: BlankOptions, first: int
) -> None:
    made = make(batch, options, first=first)
    for i in range(len(batch.lengths)):
        free_runs = runs(batch, i)
        row = read(made, i)
        assert bool(row.blocks) == bool(free_runs)
        for block in row.blocks:
            last = block.start + block.size
            if block.targets[-1] == EOP:
                assert any(a <= block.start and last <= b for a, b in free_runs)
                assert all(block.loss)
            else:
                assert made.task[i] == Task.GENERATION
                assert last == batch.lengths[i]


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


@some
@given(batches(), st.integers(0, 99))
def test_rows_do_not_depend_on_their_batch(batch: Batch, first: int) -> None:
    number = len(batch.lengths)
    whole = maker(FULL, isolate=True)
    keys = keys_of(number, first=first)
    made = whole(batch, keys, sources=np.zeros(number, np.int64))
    assert batch.pieces is not None
    order = np.random.default_rng(first).permutation(number)
    for i in order.tolist():
        own = batch.pieces.windows == i
        alone = Batch(
            tokens=batch.tokens[i : i + 1],
            targets=None,
            loss_mask=batch.loss_mask[i : i + 1],
            lengths=batch.lengths[i : i + 1],
            pieces=type(batch.pieces)(
                windows=np.zeros(own.sum(), np.int64),
                starts=batch.pieces.starts[own],
                rows=batch.pieces.rows[own],
            ),
        )
        single = whole(alone, keys[i : i + 1], sources=np.zeros(1, np.int64))
        assert rows_of(single, 0) == rows_of(made, i)


@some
@given(batches(), st.sampled_from([PLAIN, SUFFIX]), st.integers(0, 99))
def test_documents_of_tokens(batch: Batch, options: BlankOptions, first: int) -> None:
    made = make(batch, options, first=first, isolate=True)
    assert made.pieces is not None
    assert batch.pieces is not None
    for i, length in enumerate(batch.lengths.tolist()):
        starts = batch.pieces.starts[batch.pieces.windows == i]
        numbers = [int((starts <= j).sum()) - 1 for j in range(length)]
        row = read(made, i)
        sep, end = int(made.sep[i]), int(made.lengths[i])
        hidden = {block.start + k for block in row.blocks for k in range(1, block.size)}
        expected = [number for j, number in enumerate(numbers) if j not in hidden]
        for block in row.blocks:
            # sop and eop belong to the blank, a token to the document that it is of.
            expected += [numbers[block.start]]
            expected += [numbers[block.start + k] for k in range(len(block.inputs))]
        assert made.pieces[i, :end].tolist() == expected
        assert set(made.pieces[i, end:].tolist()) <= {-1}
        assert sep <= end


@pytest.mark.slow
def test_every_token_has_the_same_chance() -> None:
    """Documents of any length get their share; the reference gives the longest what is left."""
    lengths = [9, 200, 25, 60, 3, 120, 40]
    number = 4000
    batch = windows([[Document(n) for n in lengths]] * number, num_cls=8)
    made = make(batch, SPANS, positions=512)
    hits = np.zeros(len(lengths))
    begins = np.cumsum([0, *(n + 1 for n in lengths)])
    for i in range(number):
        for block in read(made, i).blocks:
            hits[np.searchsorted(begins, block.start, side="right") - 1] += block.size
    shares = hits / hits.sum()
    fair = (np.array(lengths) - 1) / (sum(lengths) - len(lengths))
    # A run of 2 tokens holds less of a blank than falls to it.
    assert np.delete(shares, 4) == pytest.approx(np.delete(fair, 4), rel=0.05)
    assert 0.5 * fair[4] < shares[4] < fair[4]


def test_dblock_hides_inputs_and_no_targets() -> None:
    batch = windows([PACKED] * 400)
    noisy = BlankOptions(bert_prob=0.6, sentence_prob=0.2, short_seq_prob=0, block_mask_prob=0.1)
    still = BlankOptions(bert_prob=0.6, sentence_prob=0.2, short_seq_prob=0, block_mask_prob=0)
    made, plain = make(batch, noisy, positions=256), make(batch, still, positions=256)
    hidden = made.tokens == DBLOCK
    assert not (plain.tokens == DBLOCK).any()
    for name, value in arrays(plain).items():
        if name == "tokens":
            value[hidden] = DBLOCK
        assert np.array_equal(value, arrays(made)[name])
    in_blocks = made.loss_mask & (plain.tokens != SOP)
    assert not hidden[~in_blocks].any()
    assert not hidden[made.task != Task.SPANS].any()
    spans = in_blocks[made.task == Task.SPANS].sum()
    assert hidden.sum() / spans == pytest.approx(0.1, abs=0.01)


def test_dblock_near_blanks() -> None:
    batch = windows([PACKED] * 200)
    options = BlankOptions(
        bert_prob=1,
        sentence_prob=0,
        short_seq_prob=0,
        block_mask_prob=0,
        context_mask_ratio=0.04,
    )
    made, plain = make(batch, options, positions=256), make(batch, SPANS, positions=256)
    assert np.array_equal(made.targets, plain.targets)
    for i in range(len(batch.lengths)):
        sep = int(made.sep[i])
        hidden = np.flatnonzero(made.tokens[i] == DBLOCK)
        masks = np.flatnonzero(made.tokens[i, :sep] == MASK)
        assert len(hidden) == int(0.04 * batch.lengths[i])
        assert (hidden < sep).all()
        assert (np.abs(hidden[:, None] - masks).min(axis=1) <= 3).all()
        replaced = plain.tokens[i, hidden]
        assert not np.isin(replaced, [EOS, CLS, MASK]).any()


@some
@given(batches(), st.integers(0, 99))
def test_random_positions(batch: Batch, first: int) -> None:
    options = BlankOptions(short_seq_prob=0, random_position=True)
    still = make(batch, BlankOptions(short_seq_prob=0), first=first).position_ids
    made = make(batch, options, first=first)
    assert np.array_equal(made.position_ids[:, 1], still[:, 1])
    for i, length in enumerate(made.lengths.tolist()):
        shift = (made.position_ids[i, 0] - still[i, 0])[:length]
        assert len(set(shift.tolist())) <= 1
        assert (shift >= 0).all()
        assert made.position_ids[i, 0].max() < 128


def test_the_longest_row() -> None:
    """One-token runs make one-token blanks, the most that there can be."""
    batch = windows([[Document(2)] * 60] * 20, num_cls=8)
    made = make(batch, SPANS)
    assert made.lengths.max() == 128 + 2 * int(0.15 * 128)
    assert maker(SPANS).max_length == 192


def test_a_special_token_is_missing() -> None:
    less = {key: i for key, i in SPECIAL.items() if key not in ("smask", "eop")}
    message = r"has no \[sMASK\] and eop, which these blanks need; it has cls, dblock, "
    with pytest.raises(UserError, match=message):
        BlankMaker(less, SENTENCES, max_positions=64, sentence_ends=SENTENCE_ENDS)


def test_two_special_tokens_of_one_id() -> None:
    """GLM's Chinese vocabulary without --fix-command-token has this."""
    same = {**SPECIAL, "gmask": EOP}
    with pytest.raises(UserError, match=r"\[gMASK\] and eop the same id 6"):
        BlankMaker(same, SUFFIX, max_positions=64, sentence_ends=SENTENCE_ENDS)
    # It is no problem where only one of them is needed.
    BlankMaker(same, SPANS, max_positions=64, sentence_ends=SENTENCE_ENDS)


@pytest.mark.parametrize(
    ("options", "roles"),
    [
        (SPANS, {"mask", "sop", "eop"}),
        (SENTENCES, {"mask", "smask", "sop", "eop"}),
        (SUFFIX, {"gmask", "sop", "eop"}),
        (BlankOptions(), set(SPECIAL) - {"eos", "cls", "pad"}),
        (
            BlankOptions(sentence_prob=0.5, block_mask_prob=0, context_mask_ratio=0.1),
            {"mask", "smask", "dblock", "sop", "eop"},
        ),
        (BlankOptions(bert_prob=0.7, sentence_prob=0.3, task_mask=False), None),
    ],
)
def test_only_what_is_needed_must_be_there(options: BlankOptions, roles: set[str] | None) -> None:
    needed = roles or {"mask", "sop", "eop", "dblock"}
    special = {role: SPECIAL[role] for role in {"eos", *needed}}
    assert options.roles == needed
    BlankMaker(special, options, max_positions=64, sentence_ends=SENTENCE_ENDS)


def test_a_window_longer_than_the_model() -> None:
    with pytest.raises(ValueError, match="a window has 101 tokens, the model 64 positions"):
        make(windows([[Document(100)]]), positions=64)
