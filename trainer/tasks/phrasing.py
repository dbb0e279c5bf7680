"""A text and what follows it as a row, in the way that suits a model.

    causal            text, then what follows
    glm               [CLS] text [gMASK] eos | sop what follows      no end: the text may go on
    unidirectional    [CLS] first token [gMASK] eos | sop the rest   only what follows is scored

The rows of a glm are those of THUDM/GLM (commit 4f61ed7, tasks/language_model/dataset.py), whose
texts and answers are encoded apart. A causal model's are those of lm-evaluation-harness (0.4): both
are encoded as one and parted where the text alone would end.
"""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shards.errors import UserError
from trainer.tasks.rows import Row, blank_row, causal_row
from trainer.tokenizer import TextTokenizer

Ids = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A text and what follows it, as strings."""

    context: str
    answer: str
    place: str
    """File and line, for messages."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Continuation:
    """A text and what follows it, as ids that fit in a row."""

    context: Ids
    answer: Ids
    is_cut: bool
    """Whether the context begins later than the text did."""

    def __len__(self) -> int:
        return len(self.context) + len(self.answer)


@dataclass(frozen=True, kw_only=True, eq=False)
class Phrasing:
    """How texts become rows."""

    tokenizer: TextTokenizer
    is_causal: bool
    length: int
    """Tokens of a row at most."""
    mask: int | None
    """The id of the blank; None for a causal model."""
    unidirectional: bool = False
    """A glm reads from left to right too."""

    @property
    def special(self) -> Mapping[str, int]:
        """Ids by role."""
        return self.tokenizer.special

    @property
    def pad(self) -> int:
        """What fills rows up."""
        return self.special["eos"]

    def continuations(self, pairs: Sequence[Pair]) -> list[Continuation]:
        """Return the ids of texts and of what follows them; a long text loses its beginning.

        Raises:
            UserError: what follows does not fit by itself, or has no ids.
        """
        encode = self._encode_as_one if self.is_causal else self._encode_apart
        return [self._fitted(*ids, pair) for ids, pair in zip(encode(pairs), pairs, strict=True)]

    def row(self, asked: Continuation) -> Row:
        """Return the row that asks for what follows."""
        context, answer = asked.context.tolist(), asked.answer.tolist()
        if self.is_causal:
            return causal_row(context or [self.special["eos"]], answer)
        if self.unidirectional:
            row = self.blank(context[:1], [*context[1:], *answer], ends=True)
            return scored_last(row, len(answer))
        return self.blank(context, answer, ends=True)

    def blank(self, prompt: Sequence[int], answer: Sequence[int], *, ends: bool) -> Row:
        """Return a row of a glm.

        Args:
            prompt: before the blank.
            answer: what fills it.
            ends: whether eos follows the blank.
        """
        assert self.mask is not None  # only a causal model has none
        special = self.special
        end = [special["eos"]] if ends else []
        return blank_row(
            [special.get("cls", special["eos"]), *prompt, self.mask, *end],
            mask_at=len(prompt) + 1,
            sop=special["sop"],
            answer=answer,
        )

    def _fitted(self, context: Sequence[int], answer: Sequence[int], pair: Pair) -> Continuation:
        # A causal row lacks the last token, and a glm's too: it has [CLS], the blank, eos and sop.
        room = self.length + (1 if self.is_causal else -3)
        least = 1 if self.is_causal or self.unidirectional else 0
        if not answer:
            raise UserError(f"{pair.place}: {pair.answer!r} has no tokens; expected a text.")
        if len(answer) + least > room:
            raise UserError(
                f"{pair.place}: {reprlib.repr(pair.answer)} has {len(answer):,} tokens, and in a "
                f"row of {self.length:,} there is room for {room - least:,}: give a longer "
                "--length, as far as the model reaches, or leave the item out."
            )
        kept = context[max(0, len(context) + len(answer) - room) :]
        return Continuation(
            context=np.array(kept, np.int32),
            answer=np.array(answer, np.int32),
            is_cut=len(kept) < len(context),
        )

    def _encode_as_one(self, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
        # Spaces at the end of a text belong to what follows, as tokens begin with their space.
        contexts = [pair.context.rstrip() for pair in pairs]
        wholes = self.tokenizer.encode_all([pair.context + pair.answer for pair in pairs])
        sizes = map(len, self.tokenizer.encode_all(contexts))
        return [(whole[:size], whole[size:]) for whole, size in zip(wholes, sizes, strict=True)]

    def _encode_apart(self, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
        contexts = self.tokenizer.encode_all([pair.context for pair in pairs])
        answers = self.tokenizer.encode_all([pair.answer for pair in pairs])
        return list(zip(contexts, answers, strict=True))


def scored_last(row: Row, count: int) -> Row:
    """Return a row of which only the last targets count."""
    mask = row.loss_mask.copy()
    mask[: len(mask) - count] = False
    return replace(row, loss_mask=mask)
