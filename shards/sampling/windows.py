"""Cuts a shard into windows of tokens for training, by arithmetic alone.

A shard of T tokens is treated as a ring: its first token follows its last, and that seam is a
document end like any other. Window i of stride s and phase f covers the ring from cut(f + i·s) to
cut(f + (i + 1)·s), where

    cut(x) = the first document end in [x, x + slack],
             else the first sentence end in that range,
             else x

            f            f + s          f + 2s                  T = 0      f
    --------|--··········|--············|--·····················|··········|--
            ^cut         ^cut           ^cut                               ^cut again
            |  window 0  |   window 1   |   window 2: the last wraps over |

cut(x) never decreases as x grows, so every token is in exactly one window, and a window has at most
L = s + slack tokens. There are n = ⌈T / s⌉ windows for any phase: their number depends only on T
and s. Each epoch has its own phase and so different cuts. Causal windows have slack 0 and are
cut exactly at x.

Removed documents are left out of their windows, which become shorter and get more padding; the
cuts and n do not change. A window that has no text left carries no loss.
"""

from dataclasses import dataclass
from itertools import pairwise
from operator import add
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shards.errors import DamageError
from shards.format import ARROW, BIN
from shards.reader import Dataset, Shard

_Count = TypeVar("_Count", int, NDArray[np.int64])

_SLACK = 32
"""Slack is L/32 tokens by default: windows are 97 % full on average, and at least 72 % of the cuts
in Chinese text fall at a sentence end (L = 512 and 1024)."""
_CLS = 64
"""One position in 64 of a GLM window is reserved for the `[CLS]` tokens of its document spans."""


@dataclass(frozen=True, kw_only=True)
class WindowSpec:
    """Specifies how shards are cut; made by `glm_windows` and `causal_windows`."""

    kind: Literal["glm", "causal"]
    length: int
    """L: the maximum number of tokens of the shard in a window."""
    slack: int = 0
    """The maximum number of tokens by which a cut may be past its nominal position."""
    num_cls: int = 0
    """The number of document spans of a window, counted from the first, that begin with `[CLS]`."""

    def __post_init__(self) -> None:
        if not 0 <= 2 * self.slack <= self.length or self.length < 1:
            raise ValueError(
                f"windows of {self.length} tokens cannot have a slack of {self.slack}: the length "
                "must be at least 1, the slack between 0 and half the length"
            )

    @property
    def stride(self) -> int:
        """Distance between the nominal starts of windows, in tokens."""
        return self.length - self.slack

    @property
    def positions(self) -> int:
        """The maximum number of tokens of an assembled window, its `[CLS]` tokens included."""
        return self.length + self.num_cls


def glm_windows(positions: int, *, slack: int | None = None) -> WindowSpec:
    """Return the specification for a GLM of P positions: L = P - ⌊P/64⌋, slack L/32 by default.

    `[MASK]`, `sop` and `eop` are not counted: they are added when blanks are made.
    """
    num_cls = positions // _CLS
    length = positions - num_cls
    slack = length // _SLACK if slack is None else slack
    return WindowSpec(kind="glm", length=length, slack=slack, num_cls=num_cls)


def causal_windows(length: int) -> WindowSpec:
    """Return the specification for a causal model that sees and predicts `length` tokens."""
    return WindowSpec(kind="causal", length=length)


def num_windows(tokens: _Count, stride: int) -> _Count:
    """Return the number of windows of a shard: ⌈tokens / stride⌉, elementwise."""
    return -(-tokens // stride)


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowVocabulary:
    """The properties of a vocabulary that are needed to cut and pad windows."""

    sentence_end: NDArray[np.bool_]
    """Whether a text may be cut after a token, by id."""
    cls: int
    pad: int

    @property
    def size(self) -> int:
        """The number of ids."""
        return len(self.sentence_end)

    @classmethod
    def of(cls, dataset: Dataset) -> "WindowVocabulary":
        """Return the properties of a dataset's vocabulary; eos replaces a missing `cls` or `pad`.

        Raises:
            DamageError: the vocabulary is not the one that the manifest describes.
        """
        special, size = dataset.manifest.tokenizer.special, len(dataset.vocabulary)
        if size != dataset.manifest.tokenizer.vocabulary_size:
            raise DamageError(
                f"{dataset.directory / dataset.manifest.vocabulary.path} has {size:,} tokens, the "
                f"manifest says {dataset.manifest.tokenizer.vocabulary_size:,}: restore it from a "
                "copy, or build the dataset again."
            )
        return cls(
            sentence_end=dataset.vocabulary.sentence_end,
            cls=special.get("cls", special["eos"]),
            pad=special.get("pad", special["eos"]),
        )


def window_span(
    shard: Shard, window: int, *, spec: WindowSpec, vocabulary: WindowVocabulary, phase: int = 0
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
    begin = phase + window * spec.stride
    end = min(begin + spec.stride, phase + tokens)
    if spec.slack:
        begin = _cut(shard, begin, spec=spec, vocabulary=vocabulary)
        end = _cut(shard, end, spec=spec, vocabulary=vocabulary)
    lap = begin // tokens * tokens
    return begin - lap, end - lap


def _cut(shard: Shard, position: int, *, spec: WindowSpec, vocabulary: WindowVocabulary) -> int:
    """Return cut(position), both as ring positions that may be beyond T."""
    tokens = shard.entry.tokens
    x = position % tokens
    row = int(shard.offsets.searchsorted(x))
    document_end = shard.offsets.item(row) if row < shard.entry.documents else tokens
    if document_end != _end_before(shard, row):
        raise _torn(shard)
    if document_end <= x + spec.slack:
        return position + document_end - x
    # x > 0, because 0 is a document end. A cut comes after a token: begin at the one before x.
    near = shard.ids[x - 1 : x + spec.slack]
    try:
        ends = vocabulary.sentence_end[near]
    except IndexError:
        raise foreign_token(shard, int(near.max()), vocabulary) from None
    return position + int(ends.argmax())  # argmax is 0 if there is no sentence end


def _end_before(shard: Shard, row: int) -> int:
    """Return the first token of a row: the end of the previous document according to its length.

    Offsets are searched without reading all of them, so a damaged offset may lead to a wrong row.
    The right document starts before a position and ends at the next offset.
    """
    return shard.offsets.item(row - 1) + shard.lengths.item(row - 1) if row else 0


def _torn(shard: Shard) -> DamageError:
    """Return the error about the first document that does not begin where the previous one ends."""
    begins = np.append(shard.offsets, shard.entry.tokens)
    ends = np.append(0, shard.offsets + shard.lengths)
    row = int((begins != ends).argmax())
    what = f"document {row} begins at token {begins[row]}, the one before ends at {ends[row]}"
    return shard.damage(ARROW, what)


def foreign_token(shard: Shard, token: int, vocabulary: "WindowVocabulary") -> DamageError:
    """Return the error about a token (an unsigned integer) that is beyond the vocabulary."""
    signed = int(np.array(token, np.uint64).astype(shard.tokens.dtype))
    what = f"it contains token {signed}, but ids go from 0 to {vocabulary.size - 1}"
    return shard.damage(BIN, what)


class DocumentSpan(NamedTuple):
    """A run of a shard's tokens within one document."""

    begin: int
    end: int
    row: int


def document_spans(shard: Shard, begin: int, end: int) -> list[DocumentSpan]:
    """Return the spans of the ring positions [begin, end), except removed documents.

    `begin` is below T, and `end` at most 2 T.
    """
    tokens = shard.entry.tokens
    spans = _spans(shard, begin, min(end, tokens))
    if end > tokens:
        spans += _spans(shard, 0, end - tokens)
    if len(shard.removed):
        rows = [span.row for span in spans]
        removed = set(shard.removed[np.isin(shard.removed, rows)].tolist())
        spans = [span for span in spans if span.row not in removed]
    return spans


def _spans(shard: Shard, begin: int, end: int) -> list[DocumentSpan]:
    """Return the spans of the tokens [begin, end), 0 <= begin <= end <= T."""
    if begin >= end:
        return []
    first = int(shard.offsets.searchsorted(begin, side="right")) - 1
    last = int(shard.offsets.searchsorted(end))
    if not 0 <= first < last:
        raise _torn(shard)
    edges = shard.offsets[first : last + 1].tolist()
    if last == shard.entry.documents:
        edges.append(shard.entry.tokens)
    lengths = shard.lengths[first:last].tolist()
    if list(map(add, edges, lengths)) != edges[1:]:
        raise _torn(shard)
    edges[0], edges[-1] = begin, end
    return [
        DocumentSpan(start, stop, first + i)
        for i, (start, stop) in enumerate(pairwise(edges))
        if start < stop
    ]
