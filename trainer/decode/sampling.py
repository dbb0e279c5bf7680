"""Blanks filled a token at a time: the most probable one, or one drawn.

Every prompt is a row, which goes on to its next blank, and leaves when all are filled, whatever the
other rows do. A blank's last token at the limit is put out but not read, so later blanks do not see
it, as in THUDM/GLM (commit 4f61ed7, generate_samples.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from shards.order.permutation import derive, text_key
from trainer.decode.choice import drawn, filtered, forbidden, without
from trainer.decode.decoding import Decoding
from trainer.decode.filling import ENDED, Filling, room_and_reason
from trainer.decode.prompt import Prompt
from trainer.decode.reader import Fed, Reader

OnToken = Callable[[int, int, int | None], None]
"""Called with the number of a prompt, of its blank, and a token; None: the blank is filled."""


def draw_keys(seed: int, numbers: range) -> list[int]:
    """Return what the draws of prompts derive from, by their numbers among all prompts."""
    base = np.array([text_key(seed, "generate")], np.uint64)
    keys: list[int] = derive(base, np.arange(numbers.start, numbers.stop)).tolist()
    return keys


@dataclass(kw_only=True)
class _Row:
    """A prompt that is being filled."""

    number: int
    prompt: Prompt
    key: int
    """What its draws derive from."""
    positions: int
    """How many the model has."""
    num_drawn: int = 0
    tokens: list[int] = field(default_factory=list)
    """Of the blank that is being filled."""
    fillings: list[Filling] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.fillings) == len(self.prompt.blanks)

    def next_fed(self) -> Fed:
        """Return what the model reads next."""
        number, place = len(self.fillings), len(self.tokens)
        token = self.tokens[-1] if self.tokens else self.prompt.blanks[number].token
        return Fed(token, *self.prompt.position_of(number, place))

    def chance(self) -> float:
        """Return the number in [0, 1) that decides the next token."""
        word = derive(np.array([self.key], np.uint64), self.num_drawn)[0]
        return int(word >> np.uint64(11)) / 2**53

    def take(self, token: int, *, limit: int) -> None:
        """Take a token: the next one of the blank, or its end."""
        self.num_drawn += 1
        room = self.prompt.room(len(self.fillings), self.positions)
        most, reason = room_and_reason(limit, room)
        if token in self.prompt.ends:
            reason = ENDED
        else:
            self.tokens.append(token)
            if len(self.tokens) < most:
                return
        self.fillings.append(Filling(tokens=tuple(self.tokens), finish=reason))
        self.tokens = []


def fill(
    reader: Reader,
    prompts: Sequence[Prompt],
    decoding: Decoding,
    *,
    keys: Sequence[int],
    on_token: OnToken | None = None,
) -> list[list[Filling]]:
    """Return what fills the blanks of each prompt.

    Args:
        reader: the model.
        prompts: one or more, all causal or none.
        decoding: how tokens are chosen; without beams.
        keys: what the draws of each prompt derive from.
        on_token: hears of every token as it is chosen.
    """
    rows = [
        _Row(number=number, prompt=prompt, key=key, positions=reader.positions)
        for number, (prompt, key) in enumerate(zip(prompts, keys, strict=True))
    ]
    reader.open(prompts)
    active = rows
    while active:
        logits = reader.read([[row.next_fed()] for row in active])
        for row, token in zip(active, _choose(logits, active, decoding), strict=True):
            number = len(row.fillings)
            row.take(token, limit=decoding.max_new_tokens)
            if on_token is not None:
                _tell(on_token, row, number, token)
        left = [i for i, row in enumerate(active) if not row.is_full]
        if len(left) < len(active):
            reader.select(left)
        active = [active[i] for i in left]
    return [row.fillings for row in rows]


def _tell(on_token: OnToken, row: _Row, blank: int, token: int) -> None:
    """Tell of a token that a row has taken, and whether it fills its blank."""
    if token not in row.prompt.ends:
        on_token(row.number, blank, token)
    if len(row.fillings) > blank:
        on_token(row.number, blank, None)


def _choose(logits: Tensor, rows: Sequence[_Row], decoding: Decoding) -> list[int]:
    """Return the next token of each row."""
    banned = [
        forbidden(
            row.tokens,
            ends=row.prompt.ends,
            min_tokens=decoding.min_new_tokens,
            no_repeat_ngram=decoding.no_repeat_ngram,
        )
        for row in rows
    ]
    logits = without(logits, banned)
    if decoding.draws:
        kept = filtered(
            logits, temperature=decoding.heat, top_k=decoding.top_k, top_p=decoding.top_p
        )
        chosen = drawn(kept, [row.chance() for row in rows])
    else:
        chosen = logits.argmax(-1)
    tokens: list[int] = chosen.tolist()
    return tokens
