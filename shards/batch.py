"""Reads windows: one by itself, or many at once as the padded arrays that a model takes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shards.format import Tokens
from shards.reader import Shard
from shards.windows import Marks, Piece, WindowSpec, pieces, span

_MULTIPLE = 64
"""GLM batches are padded to a multiple of so many tokens, which suits matrix units."""

_Row = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""Text and loss of one window while it is read, as wide as `_columns`. A causal window has its last
target behind its last token."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """The text of one window, without padding: pieces of documents, one behind the other."""

    tokens: NDArray[np.int64]
    """Of n tokens, each `[CLS]` among them."""
    targets: NDArray[np.int64] | None
    """Of n: causal: the next token of the shard's ring, removed documents left out; GLM: None."""
    loss_mask: NDArray[np.bool_]
    """Of n. GLM: whether a token may be predicted: prompts and `[CLS]` may not. Causal: whether
    its target counts: one in a prompt or a removed document does not."""
    piece_starts: NDArray[np.int64]
    """Where in `tokens` each piece begins."""
    piece_rows: NDArray[np.int64]
    """The document of each piece: its row in the shard."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """The pieces of a batch, by window, then place; each is int64[pieces]."""

    windows: NDArray[np.int64]
    """The row of the batch."""
    starts: NDArray[np.int64]
    """Where in that row the piece begins."""
    rows: NDArray[np.int64]
    """Its document: the row in the window's shard."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Windows, one a row. `tokens`, `targets` and `loss_mask` are [windows, width]."""

    tokens: NDArray[np.int64]
    """Each row ends in padding, the first of which may be its last target instead."""
    targets: NDArray[np.int64] | None
    """Causal: the next token; GLM: None."""
    loss_mask: NDArray[np.bool_]
    """As in `Window`; False in the padding."""
    lengths: NDArray[np.int64]
    """Tokens of each row without its padding."""
    pieces: Pieces | None
    """The pieces of documents; of causal windows only on request."""

    def cu_seqlens(self) -> NDArray[np.int32]:
        """Return where sequences begin in the batch laid end to end, and its size as the last.

        Each piece of a document is a sequence, and so is the padding of a row: attention within
        sequences crosses no document.

        Raises:
            ValueError: the batch was read without boundaries.
        """
        if self.pieces is None:
            raise ValueError("this batch was read without boundaries: ask for boundaries=True")
        num_rows, width = self.tokens.shape
        starts = self.pieces.windows * width + self.pieces.starts
        padding = (np.arange(num_rows) * width + self.lengths)[self.lengths < width]
        edges = np.sort(np.concatenate([starts, padding, [num_rows * width]]))
        return edges.astype(np.int32)


def read_window(
    shard: Shard, window: int, *, spec: WindowSpec, marks: Marks, phase: int = 0
) -> Window:
    """Return a window of a shard.

    Args:
        shard: the shard; its removed documents are left out.
        window: its number, below `num_windows` of the shard's tokens.
        spec: how the shard is cut.
        marks: of the dataset's vocabulary.
        phase: by how many tokens the ring is turned, at least 0; any number will do.

    Raises:
        IndexError: the shard has fewer windows.
    """
    batch = read_batch([shard], [window], phases=[phase], spec=spec, marks=marks, boundaries=True)
    size = int(batch.lengths[0])
    found = batch.pieces
    assert found is not None  # they were asked for
    return Window(
        tokens=batch.tokens[0, :size],
        targets=None if batch.targets is None else batch.targets[0, :size],
        loss_mask=batch.loss_mask[0, :size],
        piece_starts=found.starts,
        piece_rows=found.rows,
    )


def read_batch(
    shards: Sequence[Shard],
    windows: Sequence[int] | NDArray[np.int64],
    *,
    phases: Sequence[int] | NDArray[np.int64],
    spec: WindowSpec,
    marks: Marks,
    boundaries: bool = False,
) -> Batch:
    """Return one batch of windows, a row each.

    Args:
        shards: the shard of each row.
        windows: the number of its window.
        phases: by how many tokens its ring is turned.
        spec: how all shards are cut.
        marks: of the vocabulary that all datasets share.
        boundaries: tell the pieces of causal windows too, which costs a search in each shard.

    Raises:
        IndexError: a shard has fewer windows.
    """
    if shards and spec.kind == "causal" and not boundaries:
        batch = _copy(shards, np.asarray(windows), np.asarray(phases), spec=spec)
        if batch is not None:
            return batch
    text = np.full((len(shards), _columns(spec)), marks.pad, np.int64)
    loss = np.zeros(text.shape, np.bool_)
    found: list[list[Piece]] = []
    starts: list[list[int]] = []
    for i, shard in enumerate(shards):
        row = text[i], loss[i]
        begin, end = span(shard, int(windows[i]), spec=spec, marks=marks, phase=int(phases[i]))
        found.append(pieces(shard, begin, end))
        starts.append(_lay(shard, found[i], row, head=marks.cls, num_heads=spec.num_cls))
        if spec.kind == "causal":
            at = end % shard.entry.tokens
            _lay(
                shard, pieces(shard, at, at + 1), (row[0][starts[i][-1] :], row[1][starts[i][-1] :])
            )
    lengths = np.array([edges[-1] for edges in starts], np.int64)
    table = _table(found, starts) if boundaries or spec.kind == "glm" else None
    return _batch(text, loss, lengths=lengths, spec=spec, pieces=table)


def _columns(spec: WindowSpec) -> int:
    return spec.length + 1 if spec.kind == "causal" else -(-spec.positions // _MULTIPLE) * _MULTIPLE


def _lay(
    shard: Shard, found: Sequence[Piece], row: _Row, *, head: int = 0, num_heads: int = 0
) -> list[int]:
    """Write pieces end to end, and return where each begins and the last one ends.

    The first `num_heads` of them get the token `head` in front.
    """
    text, loss = row
    starts = [0]
    for i, (begin, end, document) in enumerate(found):
        at = starts[-1]
        if i < num_heads:
            text[at] = head
            at += 1
        stop = at + end - begin
        text[at:stop] = shard.tokens[begin:end]
        loss[at + _prompt(shard, document, begin) : stop] = True
        starts.append(stop)
    return starts


def _prompt(shard: Shard, document: int, begin: int) -> int:
    """Return how many tokens from `begin` on are of the document's prompt."""
    if shard.plain:
        return 0
    return max(0, int(shard.offsets[document]) + int(shard.prompts[document]) - begin)


def _table(found: Sequence[Sequence[Piece]], starts: Sequence[Sequence[int]]) -> Pieces:
    counts = np.array([len(row) for row in found], np.int64)
    return Pieces(
        windows=np.repeat(np.arange(len(found)), counts),
        starts=np.array([start for edges in starts for start in edges[:-1]], np.int64),
        rows=np.array([piece.row for row in found for piece in row], np.int64),
    )


def _batch(
    text: NDArray[np.int64],
    loss: NDArray[np.bool_],
    *,
    lengths: NDArray[np.int64],
    spec: WindowSpec,
    pieces: Pieces | None,
) -> Batch:
    """Return the batch of rows that were read."""
    if spec.kind == "causal":
        tokens, targets, loss_mask = text[:, :-1], text[:, 1:], loss[:, 1:]
        return Batch(
            tokens=tokens, targets=targets, loss_mask=loss_mask, lengths=lengths, pieces=pieces
        )
    width = max(1, -(-int(lengths.max(initial=0)) // _MULTIPLE)) * _MULTIPLE
    tokens, loss_mask = text[:, :width], loss[:, :width]
    return Batch(tokens=tokens, targets=None, loss_mask=loss_mask, lengths=lengths, pieces=pieces)


def _copy(
    shards: Sequence[Shard],
    windows: NDArray[np.int64],
    phases: NDArray[np.int64],
    *,
    spec: WindowSpec,
) -> Batch | None:
    """Return causal windows that are runs of tokens, copied all at once; None if one is not.

    One is not that is short, goes on at its shard's start, or has prompts or removed documents.
    """
    distinct = set(shards)
    if not all(shard.plain for shard in distinct):
        return None
    single = len(distinct) == 1
    sizes = shards[0].entry.tokens if single else np.array([s.entry.tokens for s in shards])
    starts = windows * spec.stride
    begins = (starts + phases) % sizes
    width = spec.length + 1
    whole = (starts + spec.length <= sizes) & (begins + width <= sizes)
    if not whole.all() or windows.min() < 0:
        return None
    if single:
        runs = _runs(shards[0].tokens, width)[begins]
    else:
        places = zip(shards, begins.tolist(), strict=True)
        runs = np.concatenate([shard.tokens[at : at + width] for shard, at in places])
    text = runs.astype(np.int64).reshape(len(shards), width)
    lengths = np.full(len(shards), spec.length)
    return _batch(text, np.ones(text.shape, np.bool_), lengths=lengths, spec=spec, pieces=None)


def _runs(tokens: Tokens, width: int) -> Tokens:
    """Return a view of all runs of `width` tokens, as `sliding_window_view` does in ten times."""
    shape = len(tokens) - width + 1, width
    return np.ndarray(shape, tokens.dtype, buffer=tokens, strides=tokens.strides * 2)
