"""Blanks filled with the best of several texts that are followed at once.

At each step the best 2 x n continuations of a prompt's n beams are looked at, best first: one that
ends its text finishes it, if it is among the first n, and is dropped otherwise; the first n others
are the next beams. A text is worth the sum of its log probabilities, that of its end included,
divided by its number of tokens to the power of the length penalty. The n best finished ones are
kept; a blank is full when there are n, and no beam could become better than the worst of them by
its present length. As in THUDM/GLM (commit 4f61ed7, generation_utils.py) with `--select-topk`;
there generate_samples.py draws continuations at random instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.decode.choice import NEVER, forbidden, without
from trainer.decode.decoding import Decoding
from trainer.decode.filling import ENDED, Filling, room_and_reason
from trainer.decode.prompt import Prompt
from trainer.decode.reader import Fed, Reader


class Beam(NamedTuple):
    """A text that may still grow."""

    row: int
    """Of those of its prompt."""
    tokens: tuple[int, ...]
    total: float
    """The sum of its log probabilities."""


class Finished(NamedTuple):
    """A text that has ended."""

    worth: float
    tokens: tuple[int, ...]
    is_ended: bool
    """By the model; else by a limit."""


class Search:
    """The beams of one blank."""

    def __init__(self, decoding: Decoding, *, ends: frozenset[int], counts_start: bool) -> None:
        """Begin with one empty beam.

        Args:
            decoding: how texts are compared.
            ends: the tokens that end a text.
            counts_start: the token that begins every text counts as one of its tokens.
        """
        self._decoding = decoding
        self._ends = ends
        self._extra = 1 if counts_start else 0
        self._finished: list[Finished] = []
        self.beams = [Beam(0, (), 0.0)]
        self.is_done = False

    @property
    def length(self) -> int:
        """How many tokens each beam has."""
        return len(self.beams[0].tokens) if self.beams else 0

    def step(self, logits: Tensor) -> None:
        """Follow the beams by a token.

        Args:
            logits: float32[beams, V].
        """
        n = self._decoding.beams
        length = self.length
        totals = torch.tensor([beam.total for beam in self.beams], device=logits.device)
        scores = without(logits.log_softmax(-1), [self._banned(beam) for beam in self.beams])
        scores = scores + totals[:, None]
        best = scores.flatten().topk(min(2 * n, scores.numel()))
        values: list[float] = best.values.tolist()
        places = [divmod(i, scores.shape[1]) for i in best.indices.tolist()]
        candidates = [
            Beam(row, (*self.beams[row].tokens, token), value)
            for (row, token), value in zip(places, values, strict=True)
            if value > NEVER
        ]
        grown: list[Beam] = []
        for rank, beam in enumerate(candidates):
            if beam.tokens[-1] not in self._ends:
                grown.append(beam)
            elif rank < n:
                self._finish(beam.tokens[:-1], beam.total, is_ended=True)
            if len(grown) == n:
                break
        self.beams = grown
        self.is_done = not grown or self._cannot_improve(values[0], length)

    def best(self) -> Finished:
        """Return the best text; beams that are still open take part, unless it is done."""
        if not self.is_done:
            for beam in self.beams:
                self._finish(beam.tokens, beam.total, is_ended=False)
        return max(self._finished, key=lambda finished: finished.worth)

    def _banned(self, beam: Beam) -> list[int]:
        return forbidden(
            beam.tokens,
            ends=self._ends,
            min_tokens=self._decoding.min_new_tokens,
            no_repeat_ngram=self._decoding.no_repeat_ngram,
        )

    def _worth(self, total: float, length: int) -> float:
        return float(total / max(1, length + self._extra) ** self._decoding.length_penalty)

    def _finish(self, tokens: tuple[int, ...], total: float, *, is_ended: bool) -> None:
        """Keep a text, if it is among the best."""
        self._finished.append(Finished(self._worth(total, len(tokens)), tokens, is_ended))
        self._finished.sort(key=lambda finished: -finished.worth)
        del self._finished[self._decoding.beams :]

    def _cannot_improve(self, total: float, length: int) -> bool:
        """Return whether no beam can become one of the best, by its present length."""
        if len(self._finished) < self._decoding.beams:
            return False
        return self._finished[-1].worth >= self._worth(total, length)


@dataclass(kw_only=True)
class _Group:
    """A prompt that is being filled, and the rows of its beams."""

    prompt: Prompt
    decoding: Decoding
    counts_start: bool
    start: int
    """How many tokens a row read before the blank."""
    unread: list[Fed] = field(default_factory=list)
    """What filled the blank before: the model reads the best text once more, in one row."""
    fillings: list[Filling] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.search = self._new_search()

    @property
    def is_full(self) -> bool:
        return len(self.fillings) == len(self.prompt.blanks)

    def next_fed(self) -> list[list[Fed]]:
        """Return what the model reads next, by row."""
        first = self.prompt.blanks[len(self.fillings)].token
        last = [beam.tokens[-1] if beam.tokens else first for beam in self.search.beams]
        place = self._fed(self.search.length)
        return [[*self.unread, Fed(token, *place)] for token in last]

    def advance(self, logits: Tensor, positions: int) -> list[int]:
        """Take the logits of the rows, and return which of the rows go on.

        Args:
            logits: float32[rows, V].
            positions: how many the model has.
        """
        self.start += len(self.unread)
        self.unread = []
        self.search.step(logits)
        room = self.prompt.room(len(self.fillings), positions)
        most, reason = room_and_reason(self.decoding.max_new_tokens, room)
        if not self.search.is_done and self.search.length < most:
            return [beam.row for beam in self.search.beams]
        self._fill(self.search.best(), reason)
        self.search = self._new_search()
        return [] if self.is_full else [0]

    def _fill(self, best: Finished, reason: str) -> None:
        # As when a blank is filled a token at a time, the last one at the limit is not read.
        first = self.prompt.blanks[len(self.fillings)].token
        read = (first, *best.tokens[: None if best.is_ended else -1])
        self.unread = [Fed(token, *self._fed(place)) for place, token in enumerate(read)]
        finish = ENDED if best.is_ended else reason
        self.fillings.append(Filling(tokens=best.tokens, finish=finish, score=best.worth))

    def _fed(self, place: int) -> tuple[int, int]:
        return self.prompt.position_of(len(self.fillings), place)

    def _new_search(self) -> Search:
        return Search(self.decoding, ends=self.prompt.ends, counts_start=self.counts_start)


def search(
    reader: Reader, prompts: Sequence[Prompt], decoding: Decoding, *, counts_start: bool = True
) -> list[list[Filling]]:
    """Return what fills the blanks of each prompt.

    Args:
        reader: the model.
        prompts: one or more, all causal or none.
        decoding: how texts are compared.
        counts_start: see `Search`; so it is in generate_samples.py, and not in finetune_glm.py.
    """
    reader.open(prompts)
    groups = [
        _Group(prompt=prompt, decoding=decoding, counts_start=counts_start, start=length)
        for prompt, length in zip(prompts, reader.lengths, strict=True)
    ]
    active = groups
    while active:
        fed = [group.next_fed() for group in active]
        logits = reader.read([row for rows in fed for row in rows])
        kept: list[int] = []
        lengths: list[int] = []
        first = 0
        for group, fed_rows in zip(active, fed, strict=True):
            end = first + len(fed_rows)
            rows = group.advance(logits[first:end], reader.positions)
            kept += [first + row for row in rows]
            # Where a blank has been filled, its beams are forgotten.
            length = group.start if group.unread else reader.lengths[first]
            lengths += [length] * len(rows)
            first = end
        reader.select(kept)
        reader.cut(lengths)
        active = [group for group in active if not group.is_full]
    return [group.fillings for group in groups]
