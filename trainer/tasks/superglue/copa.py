"""COPA: which of two choices is the cause or the effect of a premise."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from trainer.tasks.cloze import MASK, Pattern, cut
from trainer.tasks.counting import accuracy, labelled
from trainer.tasks.draft import Draft, check_differ, questions_of
from trainer.tasks.items import Item, read_items
from trainer.tasks.question import Question
from trainer.tasks.superglue.wording import lower_first, open_ended, plain
from trainer.tasks.task import CLASSIFIER, TEST, Asked, Defaults, Task

_LABELS = (0, 1)
_JOINERS = {"cause": " because", "effect": ", so"}
_WORDS = {"cause": " because", "effect": " so"}
_JOINED = 2
"""The pattern whose answer is the word that joins premise and choice."""


def _ask(path: Path, asked: Asked) -> list[Question]:
    items = read_items(path)
    drafts = [_draft(item, asked, ("choice1", "choice2")) for item in items]
    return questions_of([*drafts, *_mirrors(items, asked)], asked)


def _mirrors(items: list[Item], asked: Asked) -> Iterator[Draft]:
    """Yield all items once more for training, with their choices swapped."""
    if asked.is_train:
        for item in items:
            draft = _draft(item, asked, ("choice2", "choice1"))
            label = None if draft.label is None else 1 - draft.label
            yield replace(draft, name=f"{draft.name}m", label=label)


def _draft(item: Item, asked: Asked, fields: tuple[str, str]) -> Draft:
    relation = item.text("question")
    if relation not in _JOINERS:
        raise item.wrong(f'the field "question" is {relation!r}. Expected cause or effect.')
    given = [item.text(field) for field in fields]
    choices = [open_ended(lower_first(choice)) for choice in given]
    answers = tuple(f" {choice}" for choice in choices)
    check_differ(answers, asked, item=item)
    return Draft(
        item=item,
        name=item.value("idx"),
        idx=item.value("idx"),
        label=item.label(_LABELS, is_needed=asked.split != TEST),
        patterns=_patterns(item, choices, asked.pattern),
        answers=(_WORDS[relation],) * 2
        if asked.pattern == _JOINED and asked.form != CLASSIFIER
        else answers,
        pairs=_pairs(item, given, _WORDS[relation]),
    )


def _patterns(item: Item, choices: list[str], pattern: int) -> tuple[Pattern, ...]:
    one, two = choices
    premise, joiner = open_ended(item.text("premise")), _JOINERS[item.text("question")]
    if pattern == 0:
        return (Pattern(('"', one, '" or "', two, '"?', cut(f" {premise}"), joiner, MASK, ".")),)
    if pattern == 1:
        return (Pattern((one, " or", f" {two}", "?", cut(f" {premise}"), joiner, MASK, ".")),)
    return tuple(
        Pattern(('"', one, '" or "', two, '"?', cut(premise), MASK, f" {choice}"))
        for choice in choices
    )


def _pairs(item: Item, choices: list[str], word: str) -> tuple[tuple[str, str], ...]:
    premise = plain(item.text("premise")) + word
    return tuple((premise, plain(choice)) for choice in choices)


COPA = Task(
    name="copa",
    ask=_ask,
    measure=accuracy,
    hand_in=labelled(_LABELS),
    defaults=Defaults(num_patterns=3),
)
