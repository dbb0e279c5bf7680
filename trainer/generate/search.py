"""Fills blanks by beam search; greedy decoding and sampling are searches with one beam.

At each step the best 2 x n continuations of a prompt's n beams are considered, best first. A
continuation that ends its text finishes the text if it is among the first n, and is dropped
otherwise; the first n of the remaining continuations become the next beams. The score of a text is
the sum of its log probabilities, including that of the token that ends it. The n best finished
texts are kept. A blank is filled when there are n finished texts and no beam can become better than
the worst of these. This follows THUDM/GLM (commit 4f61ed7, generation_utils.py) with
`--select-topk`; its generate_samples.py draws continuations at random instead. Greedy decoding is a
search with one beam, and sampling is a search whose one beam has a drawn token as its only
continuation.

A prompt proceeds to its next blank, and leaves the batch when all its blanks are filled,
independently of the other prompts. If a blank ends at the limit, its last token is returned but the
model does not read it, so later blanks do not see it.

A draw is a pure function of the logits and of one number in [0, 1). That number is derived from the
seed, the number of the prompt and the number of the token, so a draw does not depend on the other
draws of its batch.
"""

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shards.errors import UserError
from shards.sampling.permutation import derive, text_key
from trainer.generate.decoder import CachedDecoder, InputToken
from trainer.generate.decoding import Decoding
from trainer.generate.prompt import Prompt

ENDED, LIMIT, POSITIONS = "end", "length", "positions"
"""Reasons why the text of a blank ends: the model ended the text; the text has the maximum number
of tokens; or the model has no more positions."""

Continuations = Sequence[tuple[float, int]]
"""The best continuations of a beam: for each, the sum of log probabilities and the token."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The tokens that fill a blank."""

    tokens: tuple[int, ...]
    """The tokens without the token that ends the text."""
    finish: str
    """The reason why the text ends: ENDED, LIMIT or POSITIONS."""
    score: float | None = None
    """The score of the best beam; None if there is only one beam."""


class Beam(NamedTuple):
    """An unfinished text."""

    row: int
    """The row of the prompt that the text continues."""
    tokens: tuple[int, ...]
    total: float
    """The sum of the log probabilities of the text's tokens."""


class _Finished(NamedTuple):
    score: float
    tokens: tuple[int, ...]
    reason: str


class _Row(NamedTuple):
    """The tokens of a beam that the model reads next."""

    beam: Beam
    length: int
    """The number of tokens in the cache that belong to the beam."""
    inputs: list[InputToken]
    ends: frozenset[int]
    """The tokens that end the text."""


def fill(
    decoder: CachedDecoder,
    prompts: Sequence[Prompt],
    decoding: Decoding,
    *,
    first: int = 0,
) -> list[list[Completion]]:
    """Return the completions of the blanks of each prompt.

    Args:
        decoder: the model with its cache.
        prompts: a batch of one or more prompts, which are either all causal or all not causal.
        decoding: the options for choosing tokens.
        first: the number of the first prompt among all prompts. Draws depend on this number and on
            the seed, but not on the batch.
    """
    decoder.prefill(prompts)
    base = np.array([text_key(decoding.seed, "generate")], np.uint64)
    keys = derive(base, np.arange(first, first + len(prompts)))
    filled: list[list[Completion]] = [[] for _ in prompts]
    search = _Search(decoding, decoder.positions)
    writing = [search.write(*pair) for pair in zip(prompts, filled, strict=True)]
    turns = {number: next(writer) for number, writer in enumerate(writing)}
    for step in count():
        rows = [row for turn in turns.values() for row in turn]
        logits = decoder.decode([row.inputs for row in rows])
        uniform = (derive(keys[list(turns)], step) >> np.uint64(11)) / 2**53
        found = iter(_continuations(logits, rows, decoding, uniform.tolist()))
        kept: list[tuple[int, int]] = []
        before = 0
        for number, turn in list(turns.items()):
            del turns[number]
            with suppress(StopIteration):  # all blanks of the prompt are filled
                turns[number] = writing[number].send([next(found) for _ in turn])
                kept += [(before + row.beam.row, row.length) for row in turns[number]]
            before += len(turn)
        if not turns:
            break
        decoder.reorder(kept)
    return filled


@dataclass(frozen=True)
class _Search:
    """The search for the texts of all prompts."""

    decoding: Decoding
    positions: int
    """The number of positions of the model."""

    def write(
        self, prompt: Prompt, completions: list[Completion]
    ) -> Generator[list[_Row], Sequence[Continuations], None]:
        """Fill the blanks of a prompt: yield rows to read, and receive their continuations."""
        is_one, length = self.decoding.beams == 1, len(prompt.context)
        unread: list[InputToken] = []
        for number, blank in enumerate(prompt.blanks):
            begin = length + len(unread)
            most = min(self.decoding.max_new_tokens, prompt.room(number, self.positions))
            reason = LIMIT if most == self.decoding.max_new_tokens else POSITIONS
            beams, finished = [Beam(0, (), 0.0)], list[_Finished]()
            while beams and len(beams[0].tokens) < most:
                place = prompt.position_of(number, len(beams[0].tokens))
                last = [beam.tokens[-1] if beam.tokens else blank.token for beam in beams]
                found = yield [
                    _Row(beam, length, [*unread, InputToken(token, *place)], prompt.ends)
                    for beam, token in zip(beams, last, strict=True)
                ]
                beams = self._grown(beams, found, finished, prompt.ends)
                length, unread = length + len(unread) + 1, []
            finished += [_Finished(beam.total, beam.tokens, reason) for beam in beams]
            best = max(finished, key=lambda one: one.score)
            if not is_one:
                # The beams are discarded, and the best text is read again in one row, except for
                # the last token at the limit.
                length = begin
                read = (blank.token, *best.tokens[: None if best.reason == ENDED else -1])
                unread = [
                    InputToken(token, *prompt.position_of(number, at))
                    for at, token in enumerate(read)
                ]
            score = None if is_one else best.score
            completions.append(Completion(tokens=best.tokens, finish=best.reason, score=score))

    def _grown(
        self,
        beams: Sequence[Beam],
        continuations: Sequence[Continuations],
        finished: list[_Finished],
        ends: frozenset[int],
    ) -> list[Beam]:
        """Return the beams with one more token; none if the search is over.

        Args:
            beams: the current beams.
            continuations: the best continuations of each beam.
            finished: the best finished texts of the blank so far, best first; updated in place.
            ends: the tokens that end a text.
        """
        n = self.decoding.beams
        candidates = [
            Beam(row, (*beam.tokens, token), total)
            for row, (beam, found) in enumerate(zip(beams, continuations, strict=True))
            for total, token in found
            if total > NEVER
        ]
        candidates = sorted(candidates, key=lambda beam: -beam.total)[: 2 * n]
        finished += [
            _Finished(beam.total, beam.tokens[:-1], ENDED)
            for beam in candidates[:n]
            if beam.tokens[-1] in ends
        ]
        finished[:] = sorted(finished, key=lambda one: -one.score)[:n]
        if len(finished) == n and finished[-1].score >= candidates[0].total:
            return []
        return [beam for beam in candidates if beam.tokens[-1] not in ends][:n]


def _continuations(
    logits: Tensor, rows: Sequence[_Row], decoding: Decoding, uniform: Sequence[float]
) -> Iterator[Continuations]:
    """Yield the best continuations of each row.

    Args:
        logits: float32[rows, V].
        rows: the rows that were read.
        decoding: the options for choosing tokens.
        uniform: for each row, the number in [0, 1) that decides which token is drawn.
    """
    banned = [banned_tokens(row.beam.tokens, row.ends, decoding) for row in rows]
    if decoding.draws:
        kept = filter_logits(mask_tokens(logits, banned), decoding)
        yield from ([(0.0, token)] for token in sample_tokens(kept, uniform).tolist())
        return
    totals = torch.tensor([row.beam.total for row in rows])
    scores = mask_tokens(logits.log_softmax(-1), banned) + totals.to(logits.device)[:, None]
    best = scores.topk(min(2 * decoding.beams, scores.shape[1]))
    for values, tokens in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        yield list(zip(values, tokens, strict=True))


NEVER = float("-inf")
_COLDEST = torch.finfo(torch.float32).tiny
"""The lowest temperature that no device rounds to 0."""


def filter_logits(logits: Tensor, decoding: Decoding) -> Tensor:
    """Return logits / temperature, float[b, V], with -inf for tokens that must not be drawn.

    First, all tokens below the k-th are removed (tokens that tie with it stay). Then a token is
    removed if the more probable tokens together exceed the probability `top_p`. This follows
    THUDM/GLM (commit 4f61ed7, generation_utils.py).
    """
    top_k, top_p = decoding.top_k, decoding.top_p
    # The best logit becomes 0, so that it stays 0 at the lowest temperature and nothing is NaN.
    best = logits.amax(-1, keepdim=True)
    logits = (logits - best) / max(decoding.effective_temperature, _COLDEST)
    if top_k:
        least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, NEVER)
    if 0 < top_p < 1:
        ranked, order = logits.sort(descending=True)
        reached = ranked.softmax(-1).cumsum(-1)
        gone = torch.zeros_like(reached, dtype=torch.bool)
        gone[:, 1:] = reached[:, :-1] > top_p
        logits = logits.masked_fill(torch.zeros_like(gone).scatter(-1, order, gone), NEVER)
    return logits


def sample_tokens(logits: Tensor, chances: Sequence[float]) -> Tensor:
    """Return a token for each row of logits, int64[b], drawn by the row's number in [0, 1)."""
    reached = logits.double().softmax(-1).cumsum(-1)
    total = reached[:, -1:]
    sought = torch.tensor(chances, dtype=torch.float64, device=logits.device)[:, None] * total
    # The first token whose cumulative probability exceeds the number; at most the last possible
    # token.
    last = (reached < total).sum(-1)
    return torch.minimum(torch.searchsorted(reached, sought, right=True)[:, 0], last)


def banned_tokens(tokens: Sequence[int], ends: Collection[int], decoding: Decoding) -> list[int]:
    """Return the tokens that must not follow: premature ends, and tokens that repeat an n-gram.

    Args:
        tokens: the text so far.
        ends: the tokens that end a text.
        decoding: the options with the minimum number of tokens, and n.
    """
    banned = list(ends) if len(tokens) < decoding.min_new_tokens else []
    if decoding.no_repeat_ngram:
        known = decoding.no_repeat_ngram - 1
        tail = tuple(tokens[len(tokens) - known :])
        banned += [
            tokens[i + known]
            for i in range(len(tokens) - known)
            if tuple(tokens[i : i + known]) == tail
        ]
    return banned


def mask_tokens(scores: Tensor, banned: Sequence[Sequence[int]]) -> Tensor:
    """Return scores float[b, V] with -inf for the banned tokens of each row.

    Raises:
        UserError: all tokens of a row are banned.
    """
    if not any(banned):
        return scores
    rows = [row for row, ids in enumerate(banned) for _ in ids]
    columns = [token for ids in banned for token in ids]
    scores = scores.clone()
    scores[rows, columns] = NEVER
    if bool((scores.amax(-1) == NEVER).any()):
        raise UserError(
            "no text can be generated: --no-repeat-ngram and --min-new-tokens forbid every token "
            "of the vocabulary. Give a longer n-gram, or fewer tokens."
        )
    return scores
