"""Encodes prompts: the tokens that a model reads, and the blanks that it fills.

    A cat [MASK] on the [sMASK]        blanks are filled from left to right
    A cat                              no blank: the text continues, as if it ended with " [gMASK]"

    Part A of a GLM   [CLS] text with masks eos        no eos after a [gMASK] that ends the text
    then per blank    sop and the completion           position of the mask; block positions 1, 2 …

The text between masks is encoded part by part; white space before a mask is dropped. This follows
THUDM/GLM (commit 4f61ed7, generate_samples.py). A causal model gets the text unchanged, with the
names of masks as plain text.
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
"""The maximum number of characters of a prompt in a message."""


@dataclass(frozen=True, kw_only=True)
class Blank:
    """A blank that a model fills."""

    token: int
    """The token that the model reads before it fills the blank, such as sop."""
    position: int
    """The position of that token."""
    block_position: int
    """The block position of that token."""
    mark: str = ""
    """The mark in the prompt; "" for a causal model."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A text with blanks in the form that a model reads."""

    context: tuple[int, ...]
    """The tokens that are read at once, before any blank."""
    blanks: tuple[Blank, ...]
    ends: frozenset[int]
    """The tokens that end the text of a blank."""
    causal: bool
    """Whether positions advance in generated text; otherwise block positions advance."""
    text: str = ""
    """The text of the prompt."""
    parts: tuple[str, ...] = ("", "")
    """The text before, between and after the blanks."""

    def position_of(self, number: int, place: int) -> tuple[int, int]:
        """Return the position and block position of a blank's token `place`, counted from 0."""
        blank = self.blanks[number]
        if self.causal:
            return blank.position + place, blank.block_position
        return blank.position, blank.block_position + place

    def room(self, number: int, positions: int) -> int:
        """Return the number of tokens that fit into a blank if there are `positions` positions."""
        blank = self.blanks[number]
        return positions - (blank.position if self.causal else blank.block_position)


def make_prompt(text: str, tokenizer: TextTokenizer, prompt_format: PromptFormat) -> Prompt:
    """Encode a text as a prompt.

    Args:
        text: the text, with or without blanks.
        tokenizer: the tokenizer of the model.
        prompt_format: the properties of the model.

    Raises:
        UserError: the tokenizer lacks a token, or the model has too few positions for the text.
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
    # In training, every document follows the end of the previous document.
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
    """Return the prompts in a file; blank lines are skipped.

    Args:
        path: a text file with one prompt per line; or, if its name ends in .jsonl, a file with one
            JSON object per line, whose `prompt` may have several lines.

    Raises:
        UserError: the file cannot be read, has no prompt, or a line has no valid prompt.
    """
    if path.suffix == ".jsonl":
        prompts = [item.text("prompt") for item in read_items(path)]
    else:
        lines = read_text(path).split("\n")
        prompts = [line.rstrip("\r") for line in lines if line.strip()]
    if not prompts:
        raise UserError(f"{path} has no prompt: write one per line.")
    return prompts
