"""A small model with random weights, and what it writes when it reads everything anew each time."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from tests.trainer import saved
from trainer.decode.prompt import Blank, Prompt
from trainer.decode.reader import Reader
from trainer.model.model import GLM

SOP, EOP, EOS = 125, 126, 127
SHAPE = replace(saved.SHAPE, vocab_size=128, max_positions=48, init_std=0.3)


@cache
def model() -> GLM:
    torch.manual_seed(3)
    return GLM(SHAPE).eval().requires_grad_(False)


def reader() -> Reader:
    return Reader(model(), SHAPE, torch.device("cpu"))


def prompt(context: Sequence[int], *masks: int) -> Prompt:
    """A prompt with blanks at these places."""
    blanks = tuple(Blank(token=SOP, position=i, block_position=1) for i in masks)
    return Prompt(
        context=tuple(context),
        blanks=blanks,
        ends=frozenset({EOP, EOS}),
        causal=False,
    )


def causal(tokens: Sequence[int]) -> Prompt:
    """A text that goes on."""
    blank = Blank(token=tokens[-1], position=len(tokens) - 1, block_position=0)
    return Prompt(
        context=tuple(tokens[:-1]),
        blanks=(blank,),
        ends=frozenset({EOS}),
        causal=True,
    )


PROMPTS = (
    prompt([1, 7, 2, 9, 3, 4, 127], 2, 4),
    prompt([1, 2, 127], 1),
    prompt(range(1, 12), 10, 3, 5),
    prompt([1, 50, 60, 3, 70, 127], 3),
)
TEXTS = (causal([5]), causal([5, 6, 7, 8, 9, 10]), causal([44, 45]))


def logits_after(wanted: Prompt, written: Sequence[Sequence[int]]) -> Tensor:
    """The logits that follow the tokens read so far of each blank, float32[V]: all in one go."""
    tokens = list(wanted.context)
    positions = [(i, 0) for i in range(len(tokens))]
    for number, read in enumerate(written):
        for place, token in enumerate([wanted.blanks[number].token, *read]):
            tokens.append(token)
            positions.append(wanted.position_of(number, place))
    sep = None if wanted.causal else torch.tensor([len(wanted.context)])
    logits: Tensor = model()(
        torch.tensor([tokens]),
        torch.tensor([positions]).transpose(1, 2),
        sep=sep,
        causal=wanted.causal,
    )
    return logits[0, -1]


def greedy(wanted: Prompt, limit: int) -> list[list[int]]:
    """What fills the blanks: the most probable tokens; the last one at the limit is not read."""
    filled: list[list[int]] = []
    read: list[list[int]] = []
    for _ in wanted.blanks:
        tokens: list[int] = []
        while len(tokens) < limit:
            token = int(logits_after(wanted, [*read, tokens]).argmax())
            if token in wanted.ends:
                break
            tokens.append(token)
        filled.append(tokens)
        read.append(tokens[: limit - 1])
    return filled
