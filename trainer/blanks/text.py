"""The text of a batch before it has blanks, its special tokens, and what a blank may cover."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shards.batch import Batch
from shards.errors import UserError
from trainer.blanks.sample_rng import Integers

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
    """Token ids by role; -1 is a token that the tokenizer lacks and nothing needs.

    As in `shards.windows`, eos stands in for cls and pad where a tokenizer lacks them.
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
    """By id: whether a token ends a sentence."""

    @classmethod
    def of(
        cls, ids: Mapping[str, int], *, needs: Collection[str], sentence_ends: NDArray[np.bool_]
    ) -> "SpecialTokens":
        """Return the special tokens of a tokenizer.

        Args:
            ids: token ids by role, `manifest.tokenizer.special`.
            needs: the roles that the options ask for; others may be missing.
            sentence_ends: bool[vocabulary], `Vocabulary.sentence_end`.

        Raises:
            UserError: a token is missing, or two share an id.
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
    """Texts, one per row; all but `lengths` are [rows, width]."""

    tokens: Integers
    loss_mask: Flags
    """What may be predicted; False in the padding."""
    lengths: Integers
    pieces: Integers | None
    """The number of each token's document in the row; values in the padding are arbitrary."""


class Spans(NamedTuple):
    """Runs of tokens within rows, sorted by row, then start; all are int64[n]."""

    rows: Integers
    starts: Integers
    sizes: Integers

    def in_rows(self, chosen: Flags) -> "Spans":
        """Return the spans in the chosen rows, bool[rows]."""
        kept = chosen[self.rows]
        if kept.all():
            return self
        return Spans(self.rows[kept], self.starts[kept], self.sizes[kept])


def group_starts(groups: Integers) -> Integers:
    """Return where each group begins in a sorted array."""
    is_start = np.ones(len(groups), np.bool_)
    np.not_equal(groups[1:], groups[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def running_sums(groups: Integers, values: Integers) -> Integers:
    """Return for each value, 0 or more, the sum up to it within its group; groups are sorted."""
    sums = np.cumsum(values)
    first = group_starts(groups)
    before = sums[first] - values[first]
    return sums - np.repeat(before, np.append(first[1:], len(groups)) - first)


def text_rows_of(batch: Batch, *, numbered: bool) -> TextRows:
    """Return the text of GLM windows, with its documents numbered on request."""
    pieces = None
    if numbered and batch.pieces is not None:
        begins = np.zeros(batch.tokens.shape, np.int64)
        begins[batch.pieces.windows, batch.pieces.starts] = 1
        pieces = np.maximum(begins.cumsum(axis=1) - 1, 0)
    return TextRows(batch.tokens, batch.loss_mask, batch.lengths, pieces)


def find_runs(text: TextRows, special: SpecialTokens) -> Spans:
    """Return the runs of tokens that a blank may cover: no prompt, no eos, no `[CLS]`.

    Each is as long as possible and within one document, since every document ends in eos.
    """
    free = text.loss_mask & ~is_special(text, special)
    height, width = free.shape
    framed = np.zeros(height * (width + 1) + 1, np.bool_)
    framed[1:].reshape(height, width + 1)[:, :width] = free
    edges = np.flatnonzero(framed[1:] != framed[:-1])
    begins = edges[::2]
    rows = begins // (width + 1)
    return Spans(rows, begins - rows * (width + 1), edges[1::2] - begins)


def is_special(text: TextRows, special: SpecialTokens) -> Flags:
    """Return which tokens are eos or `[CLS]`; padding may be among them."""
    flags: Flags = (text.tokens == special.eos) | (text.tokens == special.cls)
    return flags
