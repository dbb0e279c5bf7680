"""What an item asks, in words, and the question that it becomes in tokens."""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shards.errors import UserError
from trainer.tasks.cloze import Pattern, fill
from trainer.tasks.items import Item
from trainer.tasks.question import Question
from trainer.tasks.rows import BlankRows, Row
from trainer.tasks.task import CLASSIFIER, SPELLED, Asked


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """What an item asks, in words."""

    item: Item
    name: object
    """What its guid ends with."""
    idx: Any
    label: int | None
    """The number of the right answer or class; None: not known."""
    patterns: tuple[Pattern, ...]
    """One for all answers, or one for each."""
    answers: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    """For the classifier: two texts, or two for each answer."""
    are_words: bool = False
    """The answers are the same for all items, by label, and of one token each."""
    facts: Mapping[str, Any] | None = None


def questions_of(drafts: Iterable[Draft], asked: Asked) -> list[Question]:
    """Return drafts as questions, in their order.

    Raises:
        UserError: one does not fit, has an empty answer or a guid that another has; or the model
            has no blanks.
    """
    if asked.is_causal:
        raise UserError(
            "this task fills blanks, and the model reads from left to right. Take a model that was "
            "trained with the objective glm, or a task of prompts and answers (prompted)."
        )
    questions: list[Question] = []
    lines: dict[str, int] = {}
    for draft in drafts:
        question = question_of(draft, asked)
        if question.guid in lines:
            raise draft.item.wrong(
                f"its idx makes it {question.guid}, as line {lines[question.guid]} is. Every item "
                "needs an idx of its own."
            )
        lines[question.guid] = draft.item.line
        questions.append(question)
    return questions


def question_of(draft: Draft, asked: Asked) -> Question:
    """Return a draft as a question.

    Raises:
        UserError: it does not fit, or an answer is empty.
    """
    if asked.form == CLASSIFIER:
        rows = [_pair(pair, asked, item=draft.item) for pair in draft.pairs]
        classes = 1 if len(draft.pairs) > 1 else len(draft.answers)
        cut = sum(was_cut for _, was_cut in rows)
        return _question(draft, asked, tuple(row for row, _ in rows), cut, classes=classes)
    if draft.are_words and asked.form != SPELLED:
        words = tuple(_word(answer, asked, item=draft.item) for answer in draft.answers)
        blank, was_cut = fill(draft.patterns[0], (), asked, item=draft.item)
        return _question(draft, asked, BlankRows([blank]), int(was_cut), words=words)
    patterns = draft.patterns * (1 if len(draft.patterns) > 1 else len(draft.answers))
    answers = [_spelled(answer, asked, item=draft.item) for answer in draft.answers]
    filled = [
        fill(pattern, answer, asked, item=draft.item)
        for pattern, answer in zip(patterns, answers, strict=True)
    ]
    blanks = BlankRows([blank for blank, _ in filled])
    return _question(draft, asked, blanks, sum(was_cut for _, was_cut in filled))


def check_differ(answers: Sequence[str], asked: Asked, *, item: Item) -> None:
    """Check that no two answers are the same to a model: one would be right, and one wrong.

    Raises:
        UserError: two are.
    """
    numbers: dict[tuple[int, ...], int] = {}
    for number, answer in enumerate(answers):
        before = numbers.setdefault(tuple(asked.ids(answer)), number)
        if before != number:
            raise item.wrong(
                f"the choices {before} and {number} are the same, {reprlib.repr(answers[before])} "
                f"and {reprlib.repr(answer)}: nothing tells the right one from the wrong one. "
                "Correct the item, or leave it out."
            )


def _question(
    draft: Draft,
    asked: Asked,
    rows: Sequence[Row],
    num_shortened: int,
    *,
    words: tuple[int, ...] = (),
    classes: int = 0,
) -> Question:
    return Question(
        guid=asked.guid(draft.name),
        idx=draft.idx,
        rows=rows,
        words=words,
        label=draft.label,
        classes=classes,
        num_shortened=num_shortened,
        facts=draft.facts,
    )


def _spelled(answer: str, asked: Asked, *, item: Item) -> list[int]:
    """Return an answer's ids with the token that ends it."""
    ids = asked.ids(answer)
    if not ids:
        raise item.wrong(f"an answer is empty ({answer!r}): every choice needs a text.")
    return [*ids, asked.tokenizer.special["eop"]]


def _word(answer: str, asked: Asked, *, item: Item) -> int:
    """Return the one id of a word."""
    ids = asked.ids(answer)
    if len(ids) != 1:
        raise item.wrong(
            f"the word {answer!r} has {len(ids)} tokens with {asked.tokenizer.spec}, and one fills "
            f"a blank. Take --form {SPELLED}, or another word."
        )
    return ids[0]


def _pair(pair: tuple[str, str], asked: Asked, *, item: Item) -> tuple[Row, bool]:
    """Return the row [CLS] a sep b eos for a classifier, and whether it was cut.

    The first text gives way. (The reference cuts the row's end, with the choice or question there.)
    """
    special = asked.tokenizer.special
    first, second = (asked.ids(text) for text in pair)
    room = asked.length - len(second) - 3
    if room < min(1, len(first)):
        raise item.wrong(
            f"the second of two texts has {len(second)} tokens, which leaves nothing of --length "
            f"{asked.length} to the first. Make it longer."
        )
    ids = [special["cls"], *first[:room], special["sep"], *second, special["eos"]]
    tokens = np.array(ids, np.int64)
    positions = np.zeros((2, len(tokens)), np.int64)
    positions[0] = np.arange(len(tokens))
    row = Row(
        tokens=tokens,
        position_ids=positions,
        sep=len(tokens),
        targets=np.zeros(len(tokens), np.int64),
        loss_mask=np.zeros(len(tokens), np.bool_),
    )
    return row, len(first) > room
