import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.batch import Batch
from tests.trainer.texts import (
    CLS,
    EOS,
    SENTENCE_ENDS,
    SPECIAL_TOKENS,
    Document,
    batches,
    keys_of,
    windows,
)
from trainer.blanks.sample_rng import Integers, Purpose, SampleRng, integers_below
from trainer.blanks.shorten import shorten_texts
from trainer.blanks.text import TextRows, text_rows_of


def shorten(
    batch: Batch, *, probability: float = 1.0, positions: int = 128, first: int = 0
) -> TextRows:
    return shorten_texts(
        text_rows_of(batch, numbered=True),
        SPECIAL_TOKENS,
        probability=probability,
        max_positions=positions,
        rng=SampleRng(keys_of(len(batch.lengths), first=first)),
    )


def one_by_one(tokens: list[int], size: int, start: int) -> tuple[int, int]:
    """Begin and end of a part, by walking: the reference's rule."""

    def closes(j: int) -> bool:
        return bool(SENTENCE_ENDS[tokens[j]]) or tokens[j] == EOS

    head = int(tokens[0] == CLS)
    while start > head and (tokens[start] == EOS or not closes(start - 1)):
        start -= 1
    end = start + size
    while end > start and not closes(end - 1):
        end -= 1
    if end - start < max(1, size // 2):
        end = start + size
    return start, end


@settings(max_examples=60)
@given(batches(), st.integers(0, 999))
def test_parts_are_as_the_rule_says(batch: Batch, first: int) -> None:
    number = len(batch.lengths)
    every = np.arange(number)
    rng = SampleRng(keys_of(number, first=first))
    sizes = 32 + integers_below(rng.words(Purpose.SHORT_LENGTH, every), np.full(number, 128 - 33))
    text = shorten(batch, first=first)
    whole = text_rows_of(batch, numbered=True)
    assert whole.pieces is not None
    assert text.pieces is not None
    for i, (length, size) in enumerate(zip(batch.lengths.tolist(), sizes.tolist(), strict=True)):
        tokens = batch.tokens[i, :length].tolist()
        head = int(bool(tokens) and tokens[0] == CLS)
        expected = tokens, batch.loss_mask[i, :length].tolist(), whole.pieces[i, :length].tolist()
        if size < length - head:
            words = rng.words(Purpose.SHORT_START, every[i : i + 1])
            drawn = head + int(integers_below(words, np.array([length - size - head]))[0])
            begin, end = one_by_one(tokens, size, drawn)
            begin += int(tokens[begin] == CLS)
            if batch.loss_mask[i, begin:end].any():
                numbers = whole.pieces[i, begin:end].tolist()
                expected = (
                    [CLS, *tokens[begin:end]],
                    [False, *batch.loss_mask[i, begin:end].tolist()],
                    [numbers[0], *numbers],
                )
        length_now = int(text.lengths[i])
        assert text.tokens[i, :length_now].tolist() == expected[0]
        assert text.loss_mask[i].tolist()[:length_now] == expected[1]
        assert not text.loss_mask[i, length_now:].any()
        assert text.pieces[i, :length_now].tolist() == expected[2]


def lengths(positions: int, number: int = 3000) -> Integers:
    batch = windows([[Document(positions - 2, 0, True)]] * number, every=10**9)
    return shorten(batch, positions=positions).lengths


@pytest.mark.parametrize("positions", [4, 16, 34, 63])
def test_small_models(positions: int) -> None:
    drawn_lengths = lengths(positions, 300)
    assert drawn_lengths.min() > min(32, positions // 2)
    assert drawn_lengths.max() <= positions - 1


def test_a_part_without_loss_is_not_taken() -> None:
    """The prompt is so long that most parts of 32 tokens or more hold nothing else."""
    batch = windows([[Document(120, 119)]] * 200)
    text = shorten(batch)
    assert text.loss_mask.any(axis=1).all()
