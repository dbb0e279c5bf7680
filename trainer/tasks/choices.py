"""Tasks whose answers are chosen, as the word or choice that best fills the blank of a pattern."""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from trainer.tasks.description import SPELLED
from trainer.tasks.items import Item
from trainer.tasks.metrics import Metrics, choice_metrics
from trainer.tasks.rows import Answer, Example
from trainer.tasks.task import EncodeContext, Lines, Task, with_rows
from trainer.tasks.template import strings_of, text_of


@dataclass(frozen=True, kw_only=True, eq=False)
class ChoiceTask(Task):
    """A task whose answers are chosen."""

    USED_OPTIONS: ClassVar[tuple[str, ...]] = ("form", "length", "pattern")
    IS_GENERATED = False
    MIN_CHOICES: ClassVar[int] = 2
    """The minimum number of choices of an item."""

    def label(self, item: Item, context: EncodeContext) -> int | None:
        """Return the number of an item's right choice; None if it is not known."""
        labels = tuple(self.description.verbalizer) or range(len(self._choices(item)))
        return item.label(labels, is_needed=not context.is_test, key=self.description.label)

    def encode(self, item: Item, example: Example, context: EncodeContext) -> Example:
        """Return an example with its rows: one row per choice, or one row with words."""
        pattern, words = context.pattern, self.description.words(context.pattern)
        answers = words or self._choices(item)
        if example.facts is None:  # with facts, two equal choices may both be right
            _check_differ(answers, context, item)
        if words and context.form != SPELLED:
            row = context.blank_row(list(strings_of(pattern.text, item)), (), item)
            return with_rows(example, [row], [_word(word, context, item) for word in words])
        filled = [item] * len(answers)
        if pattern.filler:
            filled = [replace(item, fields={**item.fields, "choice": answer}) for answer in answers]
            answers = [text_of(pattern.filler, one) for one in filled]
        rows = [
            context.blank_row(
                list(strings_of(pattern.text, one)), _spelled(answer, context, one), one
            )
            for one, answer in zip(filled, answers, strict=True)
        ]
        return with_rows(example, rows)

    def metrics(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Metrics:
        """Return the metrics that the description names; see `Task.metrics`."""
        figures = choice_metrics(examples, answers)
        return {name: figures[name] for name in self.description.metric}

    def prediction_lines(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Lines:
        """Return answers in the format for submission, one JSON object per line."""
        key = self.description.name or "idx"
        pairs = zip(examples, answers, strict=True)
        return [{key: one.idx, "label": self.as_submitted(one, given)} for one, given in pairs]

    def as_submitted(self, example: Example, given: Answer) -> Any:  # noqa: ARG002
        """Return an answer in the form for submission."""
        labels = tuple(self.description.verbalizer)
        return labels[int(given)] if labels else int(given)

    def _choices(self, item: Item) -> Sequence[str]:
        name = self.description.choices_field
        if name is None:
            return [text_of(template, item) for template in self.description.choices]
        values = item.value(*name.split("."))
        are_texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
        if not are_texts or len(values) < self.MIN_CHOICES:
            raise item.wrong(f'the field "{name}" is no list of at least {self.MIN_CHOICES} texts.')
        return list(values)


def _spelled(answer: str, context: EncodeContext, item: Item) -> list[int]:
    """Return the ids of an answer, followed by the token that ends an answer.

    Raises:
        UserError: the answer is empty.
    """
    ids = context.ids(answer)
    if not ids:
        raise item.wrong(f"an answer is empty ({answer!r}): every choice needs a text.")
    return [*ids, context.tokenizer.special["eop"]]


def _word(answer: str, context: EncodeContext, item: Item) -> int:
    """Return the id of a word.

    Raises:
        UserError: the word has more than one token.
    """
    ids = context.ids(answer)
    if len(ids) != 1:
        raise item.wrong(
            f"the word {answer!r} has {len(ids)} tokens with {context.tokenizer.spec}, and one "
            f"fills a blank. Take --form {SPELLED}, or another word."
        )
    return ids[0]


def _check_differ(answers: Sequence[str], context: EncodeContext, item: Item) -> None:
    """Check that no two answers have the same tokens, because one of the two would be wrong.

    Raises:
        UserError: two answers have the same tokens.
    """
    numbers: dict[tuple[int, ...], int] = {}
    for number, answer in enumerate(answers):
        before = numbers.setdefault(tuple(context.ids(answer)), number)
        if before != number:
            raise item.wrong(
                f"the choices {before} and {number} are the same tokens, "
                f"{reprlib.repr(answers[before])} and {reprlib.repr(answer)}: nothing tells the "
                "right one from the wrong one. Correct the item or the words, or leave it out."
            )
