"""The properties of all windows' rows; the golden row `blanks` pins some rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.sampling.batch import Batch
from tests.trainer.texts import (
    CLS,
    ENDS,
    EOP,
    EOS,
    GMASK,
    MASK,
    PLAIN,
    SMASK,
    SOP,
    Document,
    batches,
    make,
    maker,
    windows,
)
from trainer.blanks.batch import GlmBatch
from trainer.blanks.objective import BlankOptions, Objective

SPANS = replace(PLAIN, bert_prob=1, sentence_prob=0)
SENTENCES = replace(PLAIN, bert_prob=0, sentence_prob=1)
SUFFIX = replace(PLAIN, bert_prob=0, sentence_prob=0, infill_prob=0)
OBJECTIVES = st.sampled_from([PLAIN, SPANS, SENTENCES, SUFFIX, replace(SUFFIX, infill_prob=1)])


def put_back(made: GlmBatch, i: int) -> list[int]:
    """Return the text from which a row was made, after checking each of the row's blocks."""
    sep, end = int(made.sep[i]), int(made.lengths[i])
    tokens, targets, loss = made.tokens[i], made.targets[i], made.loss_mask[i]
    positions, places = made.position_ids[i]
    text = tokens[:sep]
    begins = np.flatnonzero(tokens[:end] == SOP)
    mask = [MASK, SMASK, GMASK][made.objective[i]]
    assert sorted(positions[begins]) == np.flatnonzero(text == mask).tolist()
    # Each block is sop to eop, at the position of its mask, and its inputs are one behind its
    # targets.
    blocks = np.split(np.arange(sep, end), begins[1:] - sep) if len(begins) else []
    assert end == sep + sum(map(len, blocks))
    for block in sorted(blocks, key=lambda block: -positions[block[0]]):
        assert (tokens[block[1:]] == targets[block[:-1]]).all()
        assert len(set(positions[block])) == 1
        assert places[block].tolist() == list(range(1, len(block) + 1))
        at, is_inside = positions[block[0]], targets[block[-1]] == EOP
        hidden = targets[block[:-1] if is_inside else block]
        if is_inside:
            assert loss[block].all()
            assert not np.isin(hidden, [EOS, CLS]).any()
        else:
            assert (made.objective[i], at) == (Objective.GENERATION, sep - 1)
        text = np.concatenate([text[:at], hidden, text[at + 1 :]])
    put_together: list[int] = text.tolist()
    return put_together


@settings(max_examples=80)
@given(batches(), OBJECTIVES, st.integers(0, 99))
def test_invariants_of_a_row(batch: Batch, options: BlankOptions, first: int) -> None:
    made = make(batch, options, first=first)
    width = made.tokens.shape[1]
    assert width % 64 == 0
    assert width <= maker(options).max_length
    for i, length in enumerate(batch.lengths.tolist()):
        sep, end = int(made.sep[i]), int(made.lengths[i])
        positions, places = made.position_ids[i]
        assert put_back(made, i) == batch.tokens[i, :length].tolist()
        # Wherever a target may be predicted, there is a blank.
        free = batch.loss_mask[i] & ~np.isin(batch.tokens[i], [EOS, CLS])
        assert (end > sep) == bool(free.any())
        # In Part A, positions count up, and no token is predicted.
        assert positions[:sep].tolist() == list(range(sep))
        assert not places[:sep].any()
        assert not made.loss_mask[i, :sep].any()
        # The rest is padding.
        assert not made.loss_mask[i, end:].any()
        assert not made.position_ids[i, :, end:].any()
        assert set(made.tokens[i, end:].tolist()) <= {EOS}
        # The model has all these positions.
        assert positions.max() < 128
        assert places.max() <= 128


@settings(max_examples=80)
@given(batches(), st.integers(0, 99))
def test_a_part_of_a_text_begins_with_a_sentence_or_a_document(batch: Batch, first: int) -> None:
    made = make(batch, replace(PLAIN, short_seq_prob=1), first=first)
    for i, length in enumerate(batch.lengths.tolist()):
        text, part = batch.tokens[i, :length].tolist(), put_back(made, i)
        begins = [at for at in range(1, length) if text[at : at + len(part) - 1] == part[1:]]
        if part != text:
            assert part[0] == CLS
            assert any(text[at - 1] in (CLS, EOS, *ENDS) for at in begins)
            assert part[1] != CLS


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


def test_a_window_longer_than_the_model() -> None:
    with pytest.raises(ValueError, match="a window has 101 tokens, the model 64 positions"):
        make(windows([[Document(100)]]), positions=64)
