"""Makes GLM windows for tests of blanks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from shards.sampling.batch import Batch, BatchSpans
from shards.sampling.permutation import Words, derive
from tests.trainer.corpus import SPECIAL
from trainer.blanks.batch import GlmBatch
from trainer.blanks.objective import BlankInfilling, BlankOptions

EOS, CLS, MASK, SMASK, GMASK, SOP, EOP, DBLOCK = 0, 1, 2, 3, 4, 5, 6, 7
SIZE = 1000
ENDS = range(8, 16)
"""The tokens that end a sentence."""
SENTENCE_ENDS: NDArray[np.bool_] = np.isin(np.arange(SIZE), ENDS)
PLAIN = BlankOptions(short_seq_prob=0, block_mask_prob=0)
"""Options that allow every objective, but do not change the text."""


class Document(NamedTuple):
    """A document, or a part of one, in a window."""

    length: int
    """The number of tokens, including the eos."""
    prompt: int = 0
    is_open: bool = False
    """Whether the document continues after the window, so that its eos is not in the window."""


def windows(
    rows: Sequence[Sequence[Document]], *, num_cls: int = 2, every: int = 9, seed: int = 0
) -> Batch:
    """Return windows of random text in which about one token in `every` ends a sentence."""
    lengths = [sum(d.length for d in row) + min(len(row), num_cls) for row in rows]
    width = max(1, -(-max(lengths, default=0) // 64)) * 64
    tokens = np.zeros((len(rows), width), np.int64)
    loss_mask = np.zeros((len(rows), width), np.bool_)
    starts: list[tuple[int, int]] = []
    for i, row in enumerate(rows):
        at = 0
        for j, document in enumerate(row):
            starts.append((i, at))
            if j < num_cls:
                tokens[i, at] = CLS
                at += 1
            end = at + document.length
            words = derive(np.array([seed], np.uint64), i * width + np.arange(at, end))
            closes = words % every == 0
            tokens[i, at:end] = np.where(closes, ENDS[0] + words % 8, 16 + words % (SIZE - 16))
            loss_mask[i, at + document.prompt : end] = True
            if not document.is_open:
                tokens[i, end - 1] = EOS
            at = end
    table = np.array(starts, np.int64).reshape(-1, 2)
    spans = BatchSpans(windows=table[:, 0], starts=table[:, 1], rows=np.arange(len(table)))
    return Batch(
        tokens=tokens,
        targets=None,
        loss_mask=loss_mask,
        lengths=np.array(lengths, np.int64),
        spans=spans,
    )


@st.composite
def batches(draw: st.DrawFn, *, positions: int = 128) -> Batch:
    """Draw windows of any shape: empty, of one document, of many short ones, or with prompts."""
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        room = draw(st.integers(0, positions - 2))
        longest = draw(st.sampled_from([1, 3, 12, 60, positions]))
        row: list[Document] = []
        while room > 0:
            length = min(room, draw(st.integers(1, longest)))
            room -= length
            prompt = min(draw(st.sampled_from([0, 0, 0, 5, 40])), length - 1)
            row.append(Document(length, prompt, room == 0 and draw(st.booleans())))
        rows.append(row)
    every = draw(st.sampled_from([1, 4, 15, 10**9]))
    return windows(rows, every=every, seed=draw(st.integers(0, 10**6)))


def keys_of(number: int, *, first: int = 0) -> Words:
    """Return a number of different keys."""
    return np.arange(first, first + number, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def maker(
    options: BlankOptions = PLAIN, *, positions: int = 128, isolate: bool = False
) -> BlankInfilling:
    """Return an object that makes blanks with these options."""
    return BlankInfilling(
        SPECIAL, options, max_positions=positions, sentence_ends=SENTENCE_ENDS, isolate=isolate
    )


def make(batch: Batch, options: BlankOptions = PLAIN, **more: Any) -> GlmBatch:
    """Return the rows of a batch, with keys that count up from `first`."""
    first = more.pop("first", 0)
    number = len(batch.lengths)
    return maker(options, **more)(batch, keys_of(number, first=first), sources=np.arange(number))
