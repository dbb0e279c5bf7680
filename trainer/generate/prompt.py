"""Prompts: the tokens that a model reads before it writes, and where it writes.

    A cat [MASK] on the [sMASK]        each blank is filled, from left to right
    A cat                              no blank: the text continues, as if it ended with " [gMASK]"

    Part A of a GLM   [CLS] text with masks eos        no eos behind a [gMASK] that ends the text
    then per blank    sop and what fills it            position of the mask; block positions 1, 2 …

Text is encoded piece by piece, the ids joined; white space in front of a mask is dropped. As in
THUDM/GLM (commit 4f61ed7, generate_samples.py). A causal model gets the text as it is: the names of
masks are plain text to it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shards.errors import UserError
from trainer.tasks.items import read_items, read_text
from trainer.tokenizer import PromptFormat, TextTokenizer

MARKS: Mapping[str, str] = {"[MASK]": "mask", "[sMASK]": "smask", "[gMASK]": "gmask"}
"""The marks of blanks in a prompt, and the roles of their tokens."""
_MARK = re.compile(r"(\[[sg]?MASK\])")
_SHOWN = 40
"""Characters of a prompt in a message."""


@dataclass(frozen=True, kw_only=True)
class Blank:
    """Where a model writes."""

    token: int
    """The token that is read first."""
    position: int
    block_position: int
    """Of that token."""
    mark: str = ""
    """As written in the prompt; "": the text continues."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A text with blanks, as a model reads it."""

    context: tuple[int, ...]
    """Tokens that are read at once, before any blank."""
    blanks: tuple[Blank, ...]
    ends: frozenset[int]
    """The tokens that end what fills a blank."""
    causal: bool
    """Written tokens have further positions; else further block positions."""
    text: str = ""
    """As it was given."""
    parts: tuple[str, ...] = ("", "")
    """The text before, between and behind the blanks."""

    def position_of(self, number: int, place: int) -> tuple[int, int]:
        """Return position and block position of a token of a blank, the first one at place 0."""
        blank = self.blanks[number]
        if self.causal:
            return blank.position + place, blank.block_position
        return blank.position, blank.block_position + place

    def room(self, number: int, positions: int) -> int:
        """Return how many tokens fit into a blank of a model with this many positions."""
        blank = self.blanks[number]
        return positions - (blank.position if self.causal else blank.block_position)


def make_prompt(text: str, tokenizer: TextTokenizer, prompt_format: PromptFormat) -> Prompt:
    """Return the prompt that a text is.

    Args:
        text: with or without blanks.
        tokenizer: the model's.
        prompt_format: how the model reads.

    Raises:
        UserError: the tokenizer lacks a token, or the text has no place in the model.
    """
    if prompt_format.causal:
        prompt = _causal_prompt(text, tokenizer)
    else:
        prompt = _blank_prompt(text, tokenizer, task_mask=prompt_format.task_mask)
    size = len(prompt.context) + (1 if prompt_format.causal else 0)
    if size > prompt_format.positions:
        raise UserError(
            f"the prompt {_shown(text)} has {size:,} tokens, and the model has "
            f"{prompt_format.positions:,} positions: shorten it by hand, so that you know what is "
            "left out."
        )
    return prompt


def _causal_prompt(text: str, tokenizer: TextTokenizer) -> Prompt:
    # Every document follows the end of another one.
    ids = tokenizer.encode(text) or [tokenizer.special["eos"]]
    blank = Blank(token=ids[-1], position=len(ids) - 1, block_position=0)
    return Prompt(
        text=text,
        parts=(text, ""),
        context=tuple(ids[:-1]),
        blanks=(blank,),
        ends=frozenset({tokenizer.special["eos"]}),
        causal=True,
    )


def _blank_prompt(text: str, tokenizer: TextTokenizer, *, task_mask: bool) -> Prompt:
    special = tokenizer.special
    marked = text
    if _MARK.search(text) is None:
        goes_on = task_mask and "gmask" in special
        marked = f"{text} {'[gMASK]' if goes_on else '[MASK]'}"
    pieces = _MARK.split(marked)
    parts = [part.rstrip() for part in pieces[:-1:2]] + pieces[-1:]
    marks = pieces[1::2]
    unknown = [] if task_mask else [mark for mark in marks if mark != "[MASK]"]
    if unknown:
        raise UserError(
            f"the prompt {_shown(text)} has {unknown[0]}, and the model was trained without task "
            "masks: write [MASK] for every blank."
        )
    sop = _id_of("sop", tokenizer)
    context = [special.get("cls", special["eos"]), *_encoded(parts[0], tokenizer)]
    blanks = []
    for mark, part in zip(marks, parts[1:], strict=True):
        blanks.append(Blank(mark=mark, token=sop, position=len(context), block_position=1))
        context += [_id_of(MARKS[mark], tokenizer), *_encoded(part, tokenizer)]
    if not marked.endswith("[gMASK]"):
        context.append(special["eos"])
    return Prompt(
        text=text,
        parts=tuple(parts),
        context=tuple(context),
        blanks=tuple(blanks),
        ends=frozenset({special["eos"], _id_of("eop", tokenizer)}),
        causal=False,
    )


def _encoded(part: str, tokenizer: TextTokenizer) -> list[int]:
    return tokenizer.encode(part) if part.strip() else []


def _id_of(role: str, tokenizer: TextTokenizer) -> int:
    if role not in tokenizer.special:
        names = {role: mark for mark, role in MARKS.items()}
        raise UserError(
            f"the tokenizer {tokenizer.spec} has no {names.get(role, role)}: write another mark of "
            "a blank that it has, or use a model whose tokenizer has this one."
        )
    return tokenizer.special[role]


def _shown(text: str) -> str:
    return f'"{text[:_SHOWN]}…"' if len(text) > _SHOWN else f'"{text}"'


def read_prompts(path: Path) -> list[str]:
    """Return the prompts of a file; lines without text are none.

    Args:
        path: of text, one prompt per line; or, if its name ends in .jsonl, of objects with a
            `prompt`, which may have several lines.

    Raises:
        UserError: it cannot be read, has no prompt, or a line of it is none.
    """
    if path.suffix == ".jsonl":
        prompts = [item.text("prompt") for item in read_items(path)]
    else:
        lines = read_text(path).split("\n")
        prompts = [line.rstrip("\r") for line in lines if line.strip()]
    if not prompts:
        raise UserError(f"{path} has no prompt: write one a line.")
    return prompts
