"""Reads many windows at once as the padded arrays that a model takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shards.format import ARROW
from shards.reader import Shard
from shards.sampling.windows import (
    DocumentSpan,
    WindowSpec,
    WindowVocabulary,
    document_spans,
    foreign_token,
    window_span,
)

_MULTIPLE = 64
"""GLM batches are padded to a multiple of this many tokens, which suits matrix units."""

_Row = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""Tokens and loss mask of a window while it is assembled, `_row_width` wide. In a causal row the
last target follows the last token."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchSpans:
    """The spans of a batch, in the order of the text; each field is int64[spans]."""

    windows: NDArray[np.int64]
    """The row of the batch that contains the span."""
    starts: NDArray[np.int64]
    """The index in that row at which the span starts."""
    rows: NDArray[np.int64]
    """The row of the span's document in the window's shard."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Windows, one per row. `tokens`, `targets` and `loss_mask` are [windows, width]."""

    tokens: NDArray[np.int64]
    """The tokens, padded at the end of each row; the first pad may be the last target instead."""
    targets: NDArray[np.int64] | None
    """For causal windows, the next tokens of the ring, except removed documents; None for GLM."""
    loss_mask: NDArray[np.bool_]
    """GLM: whether the token may be predicted; prompts and `[CLS]` may not. Causal: whether its
    target carries loss; targets in prompts and removed documents do not. False in the padding."""
    lengths: NDArray[np.int64]
    """The number of tokens of each row, including `[CLS]` tokens but not the padding."""
    spans: BatchSpans | None
    """The spans of documents: always set for GLM windows, on request for causal windows."""

    def cu_seqlens(self) -> NDArray[np.int32]:
        """Return the starts of all sequences in the flattened batch, followed by its size.

        Each span of a document is a sequence, and so is the padding of a row: attention within
        sequences never crosses documents.

        Raises:
            ValueError: the batch was read without boundaries.
        """
        if self.spans is None:
            raise ValueError("this batch was read without boundaries: ask for boundaries=True")
        num_rows, width = self.tokens.shape
        starts = self.spans.windows * width + self.spans.starts
        padding = (np.arange(num_rows) * width + self.lengths)[self.lengths < width]
        edges = np.sort(np.concatenate([starts, padding, [num_rows * width]]))
        return edges.astype(np.int32)


def read_batch(
    shards: Sequence[Shard],
    windows: Sequence[int] | NDArray[np.int64],
    *,
    phases: Sequence[int] | NDArray[np.int64],
    spec: WindowSpec,
    vocabulary: WindowVocabulary,
    boundaries: bool = False,
) -> Batch:
    """Return a batch of windows, one per row.

    Args:
        shards: the shard of each row.
        windows: the number of the window that fills each row, within its shard.
        phases: the rotation of the shard's ring for each row, in tokens.
        spec: how shards are cut into windows.
        vocabulary: the vocabulary that all datasets share.
        boundaries: whether to return the spans of causal windows too, which takes a search in each
            shard.

    Raises:
        IndexError: a window number is beyond the windows of its shard.
    """
    if shards and spec.kind == "causal" and not boundaries:
        batch = _copy_runs(
            shards, np.asarray(windows), np.asarray(phases), spec=spec, vocabulary=vocabulary
        )
        if batch is not None:
            return batch
    text = np.full((len(shards), _row_width(spec)), vocabulary.pad, np.int64)
    loss = np.zeros(text.shape, np.bool_)
    spans: list[list[DocumentSpan]] = []
    edges: list[list[int]] = []
    for i, shard in enumerate(shards):
        begin, end = window_span(
            shard, int(windows[i]), spec=spec, vocabulary=vocabulary, phase=int(phases[i])
        )
        spans.append(document_spans(shard, begin, end))
        row = text[i], loss[i]
        edges.append(_lay(shard, spans[i], row, head=vocabulary.cls, num_heads=spec.num_cls))
        if spec.kind == "causal":
            length, target = edges[i][-1], end % shard.entry.tokens
            rest = text[i, length:], loss[i, length:]
            _lay(shard, document_spans(shard, target, target + 1), rest)
    _check_tokens(text.view(np.uint64), shards, vocabulary)
    lengths = np.array([row_edges[-1] for row_edges in edges], np.int64)
    table = _span_table(spans, edges) if boundaries or spec.kind == "glm" else None
    return _batch(text, loss, lengths=lengths, spec=spec, spans=table)


def _check_tokens(
    rows: NDArray[np.unsignedinteger[Any]], shards: Sequence[Shard], vocabulary: WindowVocabulary
) -> None:
    """Check that a vocabulary contains all tokens of some rows.

    Raises:
        DamageError: the vocabulary lacks a token; the message names the shard of the first one.
    """
    if rows.size and int(rows.max()) >= vocabulary.size:
        row = int((rows >= vocabulary.size).any(axis=1).argmax())
        raise foreign_token(shards[row], int(rows[row].max()), vocabulary)


def _row_width(spec: WindowSpec) -> int:
    return spec.length + 1 if spec.kind == "causal" else -(-spec.positions // _MULTIPLE) * _MULTIPLE


def _lay(
    shard: Shard, spans: Sequence[DocumentSpan], row: _Row, *, head: int = 0, num_heads: int = 0
) -> list[int]:
    """Write spans into a row end to end; return each span's start and the last span's end.

    The token `head` is put in front of each of the first `num_heads` spans.
    """
    text, loss = row
    edges = [0]
    for i, span in enumerate(spans):
        start = edges[-1]
        if i < num_heads:
            text[start] = head
            start += 1
        stop = start + span.end - span.begin
        text[start:stop] = shard.tokens[span.begin : span.end]
        loss[start + _num_prompt_tokens(shard, span) : stop] = True
        edges.append(stop)
    return edges


def _num_prompt_tokens(shard: Shard, span: DocumentSpan) -> int:
    """Return how many tokens at the start of a span belong to the prompt of its document.

    Raises:
        DamageError: the prompt is negative, or not shorter than the document.
    """
    if shard.is_unmasked:
        return 0
    prompt, length = int(shard.prompts[span.row]), int(shard.lengths[span.row])
    if not 0 <= prompt < length:
        what = f"document {span.row} has {length} tokens, of which {prompt} are its prompt"
        raise shard.damage(ARROW, what)
    return max(0, int(shard.offsets[span.row]) + prompt - span.begin)


def _span_table(
    spans: Sequence[Sequence[DocumentSpan]], edges: Sequence[Sequence[int]]
) -> BatchSpans:
    """Combine the spans of all rows, using the edges that `_lay` returned for each row."""
    counts = np.array([len(row_spans) for row_spans in spans], np.int64)
    return BatchSpans(
        windows=np.repeat(np.arange(len(spans)), counts),
        starts=np.array([start for row_edges in edges for start in row_edges[:-1]], np.int64),
        rows=np.array([span.row for row_spans in spans for span in row_spans], np.int64),
    )


def _batch(
    text: NDArray[np.int64],
    loss: NDArray[np.bool_],
    *,
    lengths: NDArray[np.int64],
    spec: WindowSpec,
    spans: BatchSpans | None,
) -> Batch:
    """Return the batch of assembled rows, cut to the width that its kind of window needs."""
    targets: NDArray[np.int64] | None = None
    if spec.kind == "causal":
        tokens, targets, loss_mask = text[:, :-1], text[:, 1:], loss[:, 1:]
    else:
        width = max(1, -(-int(lengths.max(initial=0)) // _MULTIPLE)) * _MULTIPLE
        tokens, loss_mask = text[:, :width], loss[:, :width]
    return Batch(tokens=tokens, targets=targets, loss_mask=loss_mask, lengths=lengths, spans=spans)


def _copy_runs(
    shards: Sequence[Shard],
    windows: NDArray[np.int64],
    phases: NDArray[np.int64],
    *,
    spec: WindowSpec,
    vocabulary: WindowVocabulary,
) -> Batch | None:
    """Return a batch of causal windows, all copied at once; None if any window is not a run.

    A window is not a run if it is short or wraps over its shard's end, or if the shard has prompts
    or removed documents.
    """
    distinct = set(shards)
    if not all(shard.is_unmasked for shard in distinct):
        return None
    single = len(distinct) == 1
    num_tokens = (
        shards[0].entry.tokens if single else np.array([shard.entry.tokens for shard in shards])
    )
    offsets = windows * spec.stride
    begins = (offsets + phases) % num_tokens
    width = spec.length + 1
    whole = (offsets + spec.length <= num_tokens) & (begins + width <= num_tokens)
    if not whole.all() or windows.min() < 0:
        return None
    if single:
        runs = _runs(shards[0].ids, width)[begins]
    else:
        runs = np.concatenate(
            [
                shard.ids[begin : begin + width]
                for shard, begin in zip(shards, begins.tolist(), strict=True)
            ]
        ).reshape(len(shards), width)
    _check_tokens(runs, shards, vocabulary)
    text = runs.astype(np.int64)
    lengths = np.full(len(shards), spec.length)
    return _batch(text, np.ones(text.shape, np.bool_), lengths=lengths, spec=spec, spans=None)


def _runs(tokens: NDArray[np.unsignedinteger[Any]], width: int) -> NDArray[np.unsignedinteger[Any]]:
    """Return a view of all runs of `width` tokens; ten times faster than `sliding_window_view`."""
    shape = len(tokens) - width + 1, width
    return np.ndarray(shape, tokens.dtype, buffer=tokens, strides=tokens.strides * 2)
