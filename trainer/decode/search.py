"""Blanks filled with the best of several texts that are followed at once, or of one.

At each step the best 2 x n continuations of a prompt's n beams are looked at, best first: one that
ends its text finishes it, if it is among the first n, and is dropped otherwise; the first n others
are the next beams. A text is worth the sum of its log probabilities, that of its end included,
divided by its number of tokens to the power of the length penalty. The n best finished ones are
kept; a blank is full when there are n, and no beam could become better than the worst of them by
its present length. As in THUDM/GLM (commit 4f61ed7, generation_utils.py) with `--select-topk`;
there generate_samples.py draws continuations at random instead. So the most probable token each
time is one beam, and a drawn token its only continuation.

A prompt goes on to its next blank, and leaves when all are filled, whatever the others do. A
blank's last token at the limit is put out but not read, so later blanks do not see it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shards.order.permutation import derive, text_key
from trainer.decode.choice import NEVER, drawn, filtered, forbidden, without
from trainer.decode.decoding import Decoding
from trainer.decode.filling import ENDED, LIMIT, POSITIONS, Filling
from trainer.decode.prompt import Prompt
from trainer.decode.reader import InputToken, Reader

OnToken = Callable[[int, int, int | None], None]
"""Called with the number of a prompt, of its blank, and a token; None: the blank is filled."""


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

    def banned(self) -> list[list[int]]:
        """Return the tokens that must not follow each beam."""
        return [
            forbidden(
                beam.tokens,
                ends=self._ends,
                min_tokens=self._decoding.min_new_tokens,
                no_repeat_ngram=self._decoding.no_repeat_ngram,
            )
            for beam in self.beams
        ]

    def step(self, continuations: Sequence[Sequence[tuple[float, int]]]) -> None:
        """Follow the beams by a token.

        Args:
            continuations: by beam, the totals of its best ones with their tokens.
        """
        n, length = self._decoding.beams, self.length
        candidates = [
            Beam(row, (*beam.tokens, token), total)
            for row, (beam, found) in enumerate(zip(self.beams, continuations, strict=True))
            for total, token in found
            if total > NEVER
        ]
        candidates = sorted(candidates, key=lambda beam: -beam.total)[: 2 * n]
        grown: list[Beam] = []
        for rank, beam in enumerate(candidates):
            if beam.tokens[-1] not in self._ends:
                grown.append(beam)
            elif rank < n:
                self._finish(beam.tokens[:-1], beam.total, is_ended=True)
            if len(grown) == n:
                break
        self.beams = grown
        self.is_done = not grown or self._cannot_improve(candidates[0].total, length)

    def best(self) -> Finished:
        """Return the best text; beams that are still open take part, unless it is done."""
        if not self.is_done:
            for beam in self.beams:
                self._finish(beam.tokens, beam.total, is_ended=False)
        return max(self._finished, key=lambda finished: finished.worth)

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

    number: int
    """Of the prompt in its batch."""
    prompt: Prompt
    decoding: Decoding
    counts_start: bool
    key: int
    """What its draws derive from."""
    start: int
    """How many tokens a row read before the blank."""
    on_token: OnToken | None
    num_steps: int = 0
    unread: list[InputToken] = field(default_factory=list)
    """What filled the blank before, of several: the model reads it once more, in one row."""
    fillings: list[Filling] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.search = self._new_search()

    @property
    def is_full(self) -> bool:
        return len(self.fillings) == len(self.prompt.blanks)

    def inputs(self) -> list[list[InputToken]]:
        """Return what the model reads next, by row."""
        first = self.prompt.blanks[len(self.fillings)].token
        last = [beam.tokens[-1] if beam.tokens else first for beam in self.search.beams]
        place = self._placed(self.search.length)
        return [[*self.unread, InputToken(token, *place)] for token in last]

    def uniform(self) -> float:
        """Return the number in [0, 1) that decides the next token."""
        word = derive(np.array([self.key], np.uint64), self.num_steps)[0]
        return int(word >> np.uint64(11)) / 2**53

    def advance(
        self, continuations: Sequence[Sequence[tuple[float, int]]], positions: int
    ) -> list[int]:
        """Take the continuations of the rows, and return which of the rows go on.

        Args:
            continuations: as for `Search.step`.
            positions: how many the model has.
        """
        self.start += len(self.unread)
        self.unread = []
        self.num_steps += 1
        self.search.step(continuations)
        if self.decoding.beams == 1 and not self.search.is_done:
            self._tell(self.search.beams[0].tokens[-1])
        room = self.prompt.room(len(self.fillings), positions)
        most = min(self.decoding.max_new_tokens, room)
        if not self.search.is_done and self.search.length < most:
            return [beam.row for beam in self.search.beams]
        self._fill(LIMIT if most == self.decoding.max_new_tokens else POSITIONS)
        return [] if self.is_full else [0]

    def _fill(self, reason: str) -> None:
        best, is_one = self.search.best(), self.decoding.beams == 1
        if not is_one:
            # The last token at the limit is not read.
            first = self.prompt.blanks[len(self.fillings)].token
            read = enumerate((first, *best.tokens[: None if best.is_ended else -1]))
            self.unread = [InputToken(token, *self._placed(place)) for place, token in read]
        finish = ENDED if best.is_ended else reason
        for token in (*(() if is_one else best.tokens), None):
            self._tell(token)
        score = None if is_one else best.worth
        self.fillings.append(Filling(tokens=best.tokens, finish=finish, score=score))
        self.search = self._new_search()

    def _tell(self, token: int | None) -> None:
        if self.on_token is not None:
            self.on_token(self.number, len(self.fillings), token)

    def _placed(self, place: int) -> tuple[int, int]:
        return self.prompt.position_of(len(self.fillings), place)

    def _new_search(self) -> Search:
        return Search(self.decoding, ends=self.prompt.ends, counts_start=self.counts_start)


def draw_keys(seed: int, numbers: range) -> list[int]:
    """Return what the draws of prompts derive from, by their numbers among all prompts."""
    base = np.array([text_key(seed, "generate")], np.uint64)
    keys: list[int] = derive(base, np.arange(numbers.start, numbers.stop)).tolist()
    return keys


def fill(
    reader: Reader,
    prompts: Sequence[Prompt],
    decoding: Decoding,
    *,
    keys: Sequence[int] | None = None,
    counts_start: bool = True,
    on_token: OnToken | None = None,
) -> list[list[Filling]]:
    """Return what fills the blanks of each prompt.

    Args:
        reader: the model.
        prompts: one or more, all causal or none.
        decoding: how tokens are chosen and texts compared.
        keys: what the draws of each prompt derive from; needed where they are drawn.
        counts_start: see `Search`; so it is in generate_samples.py, and not in finetune_glm.py.
        on_token: hears of every token as it is chosen; with beams when the blank is filled.
    """
    reader.open(prompts)
    lengths, keys = reader.lengths, keys or [0] * len(prompts)
    groups = [
        _Group(
            number=number,
            prompt=prompt,
            decoding=decoding,
            counts_start=counts_start,
            key=key,
            start=length,
            on_token=on_token,
        )
        for number, (prompt, key, length) in enumerate(zip(prompts, keys, lengths, strict=True))
    ]
    active = groups
    while active:
        inputs = [group.inputs() for group in active]
        logits = reader.read([row for rows in inputs for row in rows])
        found = iter(_continuations(logits, active, decoding))
        lengths, kept, left, first = reader.lengths, [], [], 0
        for group, rows in zip(active, inputs, strict=True):
            for row in group.advance([next(found) for _ in rows], reader.positions):
                kept.append(first + row)
                # Where a blank has been filled, its beams are forgotten.
                left.append(group.start if group.unread else lengths[first])
            first += len(rows)
        if kept != list(range(first)):
            reader.select(kept)
        if left != reader.lengths:
            reader.cut(left)
        active = [group for group in active if not group.is_full]
    return [group.fillings for group in groups]


def _continuations(
    logits: Tensor, groups: Sequence[_Group], decoding: Decoding
) -> Iterator[list[tuple[float, int]]]:
    """Yield the best continuations of each row: totals of log probabilities, and tokens.

    Args:
        logits: float32[rows, V].
        groups: whose beams the rows are, in their order.
        decoding: how tokens are chosen.
    """
    banned = [ids for group in groups for ids in group.search.banned()]
    if decoding.draws:
        kept = filtered(
            without(logits, banned),
            temperature=decoding.heat,
            top_k=decoding.top_k,
            top_p=decoding.top_p,
        )
        for token in drawn(kept, [group.uniform() for group in groups]).tolist():
            yield [(0.0, token)]
        return
    totals = torch.tensor([beam.total for group in groups for beam in group.search.beams])
    scores = without(logits.log_softmax(-1), banned) + totals.to(logits.device)[:, None]
    best = scores.topk(min(2 * decoding.beams, scores.shape[1]))
    for values, tokens in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        yield list(zip(values, tokens, strict=True))
