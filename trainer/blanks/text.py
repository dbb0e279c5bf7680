"""The text of a batch before blanks are made, its special tokens, and the runs for blanks.

Each random number of a sample is a function of the sample's key, a purpose and a counter.

    key of a sample ─▶ derive(key, purpose) = word ─▶ derive(word, counter) = word of a stream

No generator has a state that advances, so a sample's numbers depend neither on its batch nor on
earlier draws. The hash is that of `shards.sampling.permutation`; the number of a purpose never
changes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shards.errors import UserError
from shards.sampling.batch import Batch
from shards.sampling.permutation import Words, derive

Integers = NDArray[np.int64]


class Purpose(IntEnum):
    """The decision that a random number is used for."""

    IS_SHORT = 0
    SHORT_LENGTH = 1
    SHORT_START = 2
    OBJECTIVE = 3
    IS_SINGLE = 4
    SPAN_LENGTHS = 5
    SPAN_SHARE = 6
    SPAN_ORDER = 7
    SPAN_PLACES = 8
    SENTENCE_ORDER = 9
    GENERATION_LENGTH = 10
    IS_INFILL = 11
    INFILL_START = 12
    BLOCK_ORDER = 13
    BLOCK_MASK = 14
    CONTEXT_MASK = 15
    SHIFT = 16


_ALL_ROWS = slice(None)


class SampleRng:
    """The random numbers of a batch, with one row per sample."""

    def __init__(self, keys: Words) -> None:
        self._words = derive(keys[:, None], np.arange(len(Purpose)))

    def words(self, purpose: Purpose, rows: Integers | slice = _ALL_ROWS) -> Words:
        """Return uint64[n]: one word for each of these rows."""
        words: Words = self._words[rows, purpose]
        return words

    def stream(self, purpose: Purpose, rows: Integers, counters: Integers) -> Words:
        """Return a word for each row and counter, whose shapes are broadcast."""
        return derive(self._words[rows, purpose], counters)


def integers_below(words: Words, limits: Integers) -> Integers:
    """Return, for each limit, an integer in [0, limit); limits are from 1 to 2^31."""
    return (((words >> 32) * limits.astype(np.uint64)) >> 32).astype(np.int64)


def happens(words: Words, probability: float) -> NDArray[np.bool_]:
    """Return, for each word, whether an event of this probability happens."""
    return (words >> 11) < int(probability * 2**53)


def shuffled_order(groups: Integers, words: Words) -> NDArray[np.intp]:
    """Return the indices that sort by group (a number below 2^32) and within a group by word."""
    return np.argsort((groups.astype(np.uint64) << 32) | (words >> 32), kind="stable")


_NAMES = {
    "mask": "[MASK]",
    "smask": "[sMASK]",
    "gmask": "[gMASK]",
    "sop": "sop",
    "eop": "eop",
    "dblock": "[dBLOCK]",
}
"""The roles that blanks may need, with their usual names; every tokenizer has eos."""
_ABSENT = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class SpecialTokens:
    """Token ids by role; -1 for a token that the tokenizer lacks and no option needs.

    As in `shards.windows`, eos replaces cls and pad if a tokenizer lacks them.
    """

    eos: int
    cls: int
    pad: int
    sop: int
    eop: int
    mask: int
    smask: int
    gmask: int
    dblock: int
    sentence_ends: NDArray[np.bool_]
    """For each id, whether the token ends a sentence."""

    @classmethod
    def of(
        cls, ids: Mapping[str, int], *, needs: Collection[str], sentence_ends: NDArray[np.bool_]
    ) -> "SpecialTokens":
        """Return the special tokens of a tokenizer.

        Args:
            ids: token ids by role, `manifest.tokenizer.special`.
            needs: the roles that the options need; other roles may be missing.
            sentence_ends: bool[vocabulary], `Vocabulary.sentence_end`.

        Raises:
            UserError: a token is missing, or two tokens share an id.
        """
        missing = [role for role in _NAMES if role in needs and role not in ids]
        if missing:
            raise UserError(
                f"the tokenizer of the data has no {_names_of(missing)}, which these blanks need; "
                f"it has {', '.join(sorted(ids))}. Build the dataset with a tokenizer that has "
                "GLM's command tokens, or leave out the objective that needs them."
            )
        _check_distinct(
            {role: ids[role] for role in ("eos", *_NAMES) if role in needs or role == "eos"}
        )
        return cls(
            eos=ids["eos"],
            cls=ids.get("cls", ids["eos"]),
            pad=ids.get("pad", ids["eos"]),
            **{role: ids.get(role, _ABSENT) for role in _NAMES},
            sentence_ends=sentence_ends,
        )


def _check_distinct(ids: Mapping[str, int]) -> None:
    roles: dict[int, str] = {}
    for role, token in ids.items():
        other = roles.setdefault(token, role)
        if other != role:
            raise UserError(
                f"the tokenizer of the data gives {_names_of([other, role])} the same id {token}, "
                "so that a model could not tell them apart. Build the dataset with a tokenizer "
                "that gives each its own id (for GLM's Chinese vocabulary: --fix-command-token)."
            )


def _names_of(roles: Collection[str]) -> str:
    return " and ".join(_NAMES.get(role, role) for role in roles)


Flags = NDArray[np.bool_]


class TextRows(NamedTuple):
    """Texts, one per row; all fields except `lengths` are [rows, width]."""

    tokens: Integers
    loss_mask: Flags
    """Whether a token may be predicted; False in the padding."""
    lengths: Integers
    pieces: Integers | None
    """The number of each token's document in the row; values in the padding are arbitrary."""


class BlankSpans(NamedTuple):
    """Runs of tokens within rows, sorted by row, then start; all fields are int64[n]."""

    rows: Integers
    starts: Integers
    sizes: Integers

    def in_rows(self, chosen: Flags) -> "BlankSpans":
        """Return the spans in the rows that `chosen`, bool[rows], selects."""
        kept = chosen[self.rows]
        if kept.all():
            return self
        return BlankSpans(self.rows[kept], self.starts[kept], self.sizes[kept])


def group_starts(groups: Integers) -> Integers:
    """Return the index at which each group of a sorted array begins."""
    is_start = np.ones(len(groups), np.bool_)
    np.not_equal(groups[1:], groups[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def running_sums(groups: Integers, values: Integers) -> Integers:
    """Return the running sum of values (0 or more) within each group; groups are sorted."""
    sums = np.cumsum(values)
    first = group_starts(groups)
    before = sums[first] - values[first]
    return sums - np.repeat(before, np.append(first[1:], len(groups)) - first)


def text_rows_of(batch: Batch, *, numbered: bool) -> TextRows:
    """Return the text of GLM windows; `numbered` adds the number of each token's document."""
    pieces = None
    if numbered and batch.spans is not None:
        begins = np.zeros(batch.tokens.shape, np.int64)
        begins[batch.spans.windows, batch.spans.starts] = 1
        pieces = np.maximum(begins.cumsum(axis=1) - 1, 0)
    return TextRows(batch.tokens, batch.loss_mask, batch.lengths, pieces)


def find_runs(text: TextRows, special: SpecialTokens) -> BlankSpans:
    """Return the runs of tokens that a blank may cover, which exclude prompts, eos and `[CLS]`.

    Each run is as long as possible and within one document, since every document ends in eos.
    """
    free = text.loss_mask & ~is_special(text, special)
    height, width = free.shape
    framed = np.zeros(height * (width + 1) + 1, np.bool_)
    framed[1:].reshape(height, width + 1)[:, :width] = free
    edges = np.flatnonzero(framed[1:] != framed[:-1])
    begins = edges[::2]
    rows = begins // (width + 1)
    return BlankSpans(rows, begins - rows * (width + 1), edges[1::2] - begins)


def is_special(text: TextRows, special: SpecialTokens) -> Flags:
    """Return which tokens are eos or `[CLS]`; padding may be among them."""
    flags: Flags = (text.tokens == special.eos) | (text.tokens == special.cls)
    return flags
