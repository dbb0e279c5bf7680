"""Cloze questions: of some answers, which one fills the blank of a pattern best."""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shards.errors import UserError
from trainer.tasks.items import Item
from trainer.tasks.question import Question
from trainer.tasks.rows import Blank, BlankRows
from trainer.tasks.task import SPELLED, TaskContext
from trainer.tasks.template import Template, fill, pieces_of, text_of


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A text with a blank, and what fills it."""

    template: Template
    words: tuple[str, ...] = ()
    """For each label what fills the blank; none: an item's choices do."""
    filler: Template | None = None
    """What fills the blank instead of a choice, which then stands in the pattern as {choice}."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """What an item asks."""

    item: Item
    """Its fields fill the pattern."""
    name: Any
    """What its guid ends with."""
    idx: Any
    """What predictions call it."""
    label: int | None
    """The number of the right answer; None: not known."""
    choices: Sequence[str] = ()
    facts: Mapping[str, Any] | None = None


def questions_of(drafts: Iterable[Draft], pattern: Pattern, context: TaskContext) -> list[Question]:
    """Return drafts as questions, in their order.

    Raises:
        UserError: one does not fit, has an empty answer or a guid that another has; or the model
            has no blanks.
    """
    if context.is_causal:
        raise UserError(
            "this task fills blanks, and the model reads from left to right. Take a model that was "
            "trained with the objective glm, or a task of prompts and answers (prompted)."
        )
    questions: dict[str, Question] = {}
    lines: dict[str, int] = {}
    for draft in drafts:
        question = _question(draft, pattern, context)
        if question.guid in lines:
            raise draft.item.wrong(
                f"its idx makes it {question.guid}, as line {lines[question.guid]} is. Every item "
                "needs an idx of its own."
            )
        questions[question.guid], lines[question.guid] = question, draft.item.line
    return list(questions.values())


def _question(draft: Draft, pattern: Pattern, context: TaskContext) -> Question:
    words: tuple[int, ...] = ()
    if pattern.words and context.options.form != SPELLED:
        filled = [_filled(pattern, draft.item, (), context)]
        words = tuple(_word(word, context, draft.item) for word in pattern.words)
    else:
        filled = [
            _filled(pattern, item, _spelled(answer, context, item), context)
            for item, answer in _answers(draft, pattern)
        ]
    return Question(
        guid=context.guid(draft.name),
        idx=draft.idx,
        rows=BlankRows([blank for blank, _ in filled]),
        words=words,
        label=draft.label,
        num_shortened=sum(was_cut for _, was_cut in filled),
        facts=draft.facts,
    )


def _answers(draft: Draft, pattern: Pattern) -> list[tuple[Item, str]]:
    """Return each answer with the fields of the pattern that it fills."""
    item, filler = draft.item, pattern.filler
    if filler is None:
        return [(item, answer) for answer in pattern.words or draft.choices]
    several = [replace(item, fields={**item.fields, "choice": choice}) for choice in draft.choices]
    return [(one, text_of(filler, one)) for one in several]


def _filled(
    pattern: Pattern, item: Item, answer: Sequence[int], context: TaskContext
) -> tuple[Blank, bool]:
    return fill(pieces_of(pattern.template, item), answer, context, item=item)


def _spelled(answer: str, context: TaskContext, item: Item) -> list[int]:
    """Return an answer's ids with the token that ends it."""
    ids = context.ids(answer)
    if not ids:
        raise item.wrong(f"an answer is empty ({answer!r}): every choice needs a text.")
    return [*ids, context.tokenizer.special["eop"]]


def _word(answer: str, context: TaskContext, item: Item) -> int:
    """Return the one id of a word."""
    ids = context.ids(answer)
    if len(ids) != 1:
        raise item.wrong(
            f"the word {answer!r} has {len(ids)} tokens with {context.tokenizer.spec}, and one "
            f"fills a blank. Take --form {SPELLED}, or another word."
        )
    return ids[0]


def check_differ(answers: Sequence[str], context: TaskContext, *, item: Item) -> None:
    """Check that no two answers are the same to a model: one would be right, and one wrong.

    Raises:
        UserError: two are.
    """
    numbers: dict[tuple[int, ...], int] = {}
    for number, answer in enumerate(answers):
        before = numbers.setdefault(tuple(context.ids(answer)), number)
        if before != number:
            raise item.wrong(
                f"the choices {before} and {number} are the same, {reprlib.repr(answers[before])} "
                f"and {reprlib.repr(answer)}: nothing tells the right one from the wrong one. "
                "Correct the item, or leave it out."
            )
