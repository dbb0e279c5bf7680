"""Cuts a shard into windows of tokens for training, by arithmetic alone.

A shard of T tokens is one ring: its last token is followed by its first, which is a document end
like any other. Window i of stride s and phase f covers the ring from cut(f + i·s) to
cut(f + (i + 1)·s), where

    cut(x) = the first document end within `slack` tokens from x on,
             else the first sentence end there,
             else x

            f            f + s          f + 2s                  T = 0      f
    --------|--··········|--············|--·····················|··········|--
            ^cut         ^cut           ^cut                               ^cut again
            |  window 0  |   window 1   |   window 2: the last one goes on |

A later x is never cut earlier, so each token is in exactly one window, and a window has at most
L = s + slack of them. There are n = ⌈T / s⌉ windows whatever the phase: nothing but T is needed to
count them. Another phase in each epoch cuts elsewhere. A causal window has slack 0 and is cut at x.

Removed documents are left out of the window that covers them, so that it is shorter and ends in
more padding; cuts and n stay. A window without text weighs nothing.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shards.reader import Dataset, Shard

_Count = TypeVar("_Count", int, NDArray[np.int64])

_SLACK = 32
"""A window of L tokens may be cut L/32 tokens early: it then is 97 % full on average, and of the
cuts in Chinese text at L = 512 and 1024 at least 72 % are at a sentence's end."""
_CLS = 64
"""One position in 64 of a GLM window is kept for the `[CLS]` of a piece."""


@dataclass(frozen=True, kw_only=True)
class WindowSpec:
    """How a shard is cut; `glm_windows` and `causal_windows` make one."""

    kind: Literal["glm", "causal"]
    length: int
    """L: the largest number of the shard's tokens in a window."""
    slack: int = 0
    """How many tokens behind its place a cut is looked for."""
    num_cls: int = 0
    """How many pieces of a window begin with `[CLS]`; later ones do without."""

    def __post_init__(self) -> None:
        if not 0 <= 2 * self.slack <= self.length or self.length < 1:
            raise ValueError(
                f"windows of {self.length} tokens cannot have a slack of {self.slack}: the length "
                "is at least 1, the slack at least 0 and at most half the length"
            )

    @property
    def stride(self) -> int:
        """How far windows are apart, in tokens."""
        return self.length - self.slack

    @property
    def positions(self) -> int:
        """The most tokens that an assembled window has, each `[CLS]` among them."""
        return self.length + self.num_cls


def glm_windows(positions: int, *, slack: int | None = None) -> WindowSpec:
    """Return the windows for a GLM of so many positions: L = P - P/64, slack L/32 by default.

    `[MASK]`, `sop` and `eop` come on top, when blanks are made.
    """
    num_cls = positions // _CLS
    length = positions - num_cls
    slack = length // _SLACK if slack is None else slack
    return WindowSpec(kind="glm", length=length, slack=slack, num_cls=num_cls)


def causal_windows(length: int) -> WindowSpec:
    """Return the windows for a causal model that sees `length` tokens and predicts as many."""
    return WindowSpec(kind="causal", length=length)


def num_windows(tokens: _Count, stride: int) -> _Count:
    """Return how many windows so many tokens make: ⌈tokens / stride⌉, elementwise."""
    return -(-tokens // stride)


@dataclass(frozen=True, kw_only=True, eq=False)
class Marks:
    """What windows need to know of a vocabulary."""

    sentence_end: NDArray[np.bool_]
    """By id: a text may be cut behind it."""
    cls: int
    pad: int

    @classmethod
    def of(cls, dataset: Dataset) -> "Marks":
        """Return the marks of a dataset's vocabulary.

        A tokenizer without `cls` or `pad` is served by its eos.
        """
        special = dataset.manifest.tokenizer.special
        return cls(
            sentence_end=dataset.vocabulary.sentence_end,
            cls=special.get("cls", special["eos"]),
            pad=special.get("pad", special["eos"]),
        )


def span(
    shard: Shard, window: int, *, spec: WindowSpec, marks: Marks, phase: int = 0
) -> tuple[int, int]:
    """Return the ring positions [begin, end) of a window, 0 <= begin < T; end may be beyond T.

    Raises:
        IndexError: the shard has fewer windows.
    """
    tokens = shard.entry.tokens
    count = num_windows(tokens, spec.stride)
    if not 0 <= window < count:
        raise IndexError(f"{shard.entry.path} has {count} windows, no window {window}")
    phase = int(phase) % tokens
    at = phase + window * spec.stride
    stop = min(at + spec.stride, phase + tokens)
    if spec.slack == 0:
        begin, end = at, stop
    else:
        begin, end = (_cut(shard, place, spec=spec, marks=marks) for place in (at, stop))
    lap = begin // tokens * tokens
    return begin - lap, end - lap


def _cut(shard: Shard, position: int, *, spec: WindowSpec, marks: Marks) -> int:
    """Return the ring position where the text is cut for `position`."""
    tokens = shard.entry.tokens
    x = position % tokens
    row = int(shard.offsets.searchsorted(x))
    document_end = int(shard.offsets[row]) if row < len(shard) else tokens
    if document_end <= x + spec.slack:
        return position + document_end - x
    # x > 0 here, because 0 is a document end; the cut is behind a token, so look one further back.
    ends = marks.sentence_end[shard.tokens[x - 1 : x + spec.slack]]
    return position + int(ends.argmax())  # 0 where there is none


class Piece(NamedTuple):
    """A run of a shard's tokens within one document."""

    begin: int
    end: int
    row: int


def pieces(shard: Shard, begin: int, end: int) -> list[Piece]:
    """Return the pieces of the ring positions [begin, end), removed documents left out.

    `begin` is below T, and `end` at most 2 T.
    """
    tokens = shard.entry.tokens
    found = _run(shard, begin, min(end, tokens))
    if end > tokens:
        found += _run(shard, 0, end - tokens)
    if len(shard.removed):
        removed = set(
            shard.removed[np.isin(shard.removed, [piece.row for piece in found])].tolist()
        )
        found = [piece for piece in found if piece.row not in removed]
    return found


def _run(shard: Shard, low: int, high: int) -> list[Piece]:
    first = int(shard.offsets.searchsorted(low, side="right")) - 1
    last = int(shard.offsets.searchsorted(high))
    edges = [low, *shard.offsets[first + 1 : last].tolist(), high]
    return [
        Piece(begin, end, first + i)
        for i, (begin, end) in enumerate(pairwise(edges))
        if begin < end
    ]
