"""Tasks that a JSON file describes: those known by name, and a user's own (docs/finetuning.md).

{"pattern": "{text:cut} It was [MASK].", "verbalizer": {"bad": " awful", "good": " great"}}
{"pattern": "{start:cut} [MASK]", "choices": ["{end1}", "{end2}"]}
{"pattern": "{question}", "answer": "{reply}"}
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.records import from_json
from trainer.json_file import read_object
from trainer.tasks.cloze import Draft, Pattern, check_differ, questions_of
from trainer.tasks.figures import (
    METRICS,
    HandIn,
    Measure,
    labelled,
    measured_by,
    rouge_and_exact,
    written,
)
from trainer.tasks.items import Item, names_of, read_items
from trainer.tasks.question import Question
from trainer.tasks.rows import BlankRows, Row, causal_row
from trainer.tasks.task import CLOZE, FORMS, Options, Task, TaskContext
from trainer.tasks.template import (
    Piece,
    Template,
    fields_of,
    fill,
    fitted,
    masks_of,
    parse,
    pieces_of,
    text_of,
)

_FEWEST = 2
"""Choices of an item."""


@dataclass(frozen=True, kw_only=True)
class Wording:
    """One of the patterns of a task."""

    text: str
    """A template with a blank."""
    verbalizer: Mapping[str, str] = field(default_factory=dict)
    """Other words than the task's."""
    filler: str | None = None
    """A template of what fills the blank, where {choice} stands in the text."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a file says of a task."""

    pattern: tuple[Wording, ...]
    """Numbered from 0 on."""
    default: int = 0
    """The pattern that is taken without --pattern."""
    verbalizer: Mapping[str, str] = field(default_factory=dict)
    """A word for each label, in the order of the classes."""
    choices: tuple[str, ...] = ()
    """A template for each choice."""
    choices_field: str | None = None
    """The field that holds the list of choices, where each item has its own number of them."""
    answer: str | None = None
    """A template of what is to be written."""
    label: str = "label"
    """The field with a label, or with the number of the right choice, from 0 on."""
    name: str | None = None
    """The field that every item is named by, and that its prediction begins with; None: idx or id,
    where it has one."""
    metric: tuple[str, ...] = tuple(METRICS)
    """Figures of METRICS; the first picks the best epoch."""
    form: str = CLOZE
    length: int = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class Reader:
    """What a task needs beside its description, where a line of its file is no plain item."""

    drafts: Callable[[Sequence[Item], TaskContext], Iterator[Draft]]
    measure: Measure | None = None
    hand_in: HandIn | None = None
    takes: tuple[str, ...] = ()
    """Further fields of `Asking` that mean something to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Described:
    """A task, its templates parsed."""

    name: str
    said: Description
    patterns: tuple[Pattern, ...]
    choices: tuple[Template, ...]
    answer: Template
    reader: Reader | None

    def ask(self, path: Path, context: TaskContext) -> list[Question]:
        """Return the questions of a file.

        Raises:
            UserError: the pattern or the words are not for this model, an item not for the task.
        """
        pattern = self.patterns[context.options.pattern]
        self._check_model(pattern, context)
        items = read_items(path)
        if self.answer:
            return [
                self._written(item, number, name, pattern, context)
                for number, (item, name) in enumerate(zip(items, self._names(items), strict=True))
            ]
        read = self.reader.drafts if self.reader else self._drafts
        drafts = (self._with_choices(draft, context) for draft in read(items, context))
        return questions_of(drafts, pattern, context)

    def _names(self, items: Sequence[Item]) -> list[Any]:
        if self.said.name is None:
            return names_of(items)
        return [item.name(self.said.name) for item in items]

    def _check_model(self, pattern: Pattern, context: TaskContext) -> None:
        """Check that a model knows the blank, and tells the words apart."""
        unknown = [one for one in masks_of(pattern.template) if context.blank(one) != one]
        if unknown and not context.is_causal:
            why = (
                f"the tokenizer {context.tokenizer.spec} has no such token"
                if context.task_mask
                else "the model was trained without task masks"
            )
            raise UserError(
                f"the task {self.name}: pattern {context.options.pattern} has "
                f"[{unknown[0][:-4]}MASK], and {why}. Write [MASK] there."
            )
        labels: dict[tuple[int, ...], int] = {}
        for label, word in enumerate(pattern.words):
            before = labels.setdefault(tuple(context.ids(word)), label)
            if before != label:
                one, other = (list(self.said.verbalizer)[at] for at in (before, label))
                raise UserError(
                    f"the task {self.name}: the words of {one} and {other}, "
                    f"{pattern.words[before]!r} and {word!r}, are the same tokens with "
                    f"{context.tokenizer.spec}, so that no answer tells the two apart. Give each "
                    "label another word."
                )

    def _drafts(self, items: Sequence[Item], context: TaskContext) -> Iterator[Draft]:
        labels = tuple(self.said.verbalizer)
        for number, (item, name) in enumerate(zip(items, self._names(items), strict=True)):
            known = labels or range(len(self._choices(item)))
            label = item.label(known, is_needed=not context.is_test, key=self.said.label)
            guid = name if self.said.name else number
            yield Draft(item=item, name=guid, idx=name, label=label)

    def _with_choices(self, draft: Draft, context: TaskContext) -> Draft:
        if self.said.verbalizer:
            return draft
        choices = self._choices(draft.item)
        if draft.facts is None:  # of others the reader knows which ones are right
            check_differ(choices, context, item=draft.item)
        return replace(draft, choices=choices)

    def _choices(self, item: Item) -> Sequence[str]:
        name = self.said.choices_field
        if name is None:
            return [text_of(template, item) for template in self.choices]
        values = item.value(*name.split("."))
        are_texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
        if not are_texts or (self.reader is None and len(values) < _FEWEST):
            raise item.wrong(f'the field "{name}" is no list of at least {_FEWEST} texts.')
        return list(values)

    def _written(
        self, item: Item, number: int, name: Any, pattern: Pattern, context: TaskContext
    ) -> Question:
        is_known = not context.is_test or all(
            item.has(*one.split(".")) for one in fields_of(self.answer)
        )
        reference = text_of(self.answer, item) if is_known else None
        ids = context.ids(reference) if reference and context.is_train else []
        if context.is_train and not ids:
            raise item.wrong("the answer is empty: there is nothing to learn.")
        rows, was_cut = _answered(pieces_of(pattern.template, item), ids, context, item=item)
        return Question(
            guid=context.guid(number),
            idx=name,
            rows=rows,
            num_shortened=int(was_cut),
            facts={"reference": reference},
        )


def _answered(
    pieces: Sequence[Piece], ids: list[int], context: TaskContext, *, item: Item
) -> tuple[Sequence[Row], bool]:
    """Return the row of a prompt with its answer, if there is one, and whether it was cut."""
    special = context.tokenizer.special
    has_blank = any(piece.mask for piece in pieces)
    if not context.is_causal:
        if not has_blank:  # it goes on at its end, white space there dropped
            *first, last = pieces
            end = Piece("", mask=context.blank("gmask"))
            pieces = [*first, replace(last, text=last.text.rstrip()), end]
        answer = [*ids, special["eop"]] if ids else []
        blank, was_cut = fill(pieces, answer, context, item=item)
        return BlankRows([blank]), was_cut
    if has_blank:
        raise item.wrong(
            "the pattern has a blank, and the model reads from left to right: leave the blank out, "
            "the answer then follows the pattern."
        )
    prompt, was_cut = fitted(pieces, context, item=item, taken=len(ids))
    if not prompt:
        raise item.wrong("the prompt is empty, and a model that reads on needs one.")
    return (causal_row(prompt, [*ids, special["eos"]] if ids else []),), was_cut


def read_task(path: Path, *, reader: Reader | None = None) -> Task:
    """Return the task that a file describes.

    Args:
        path: its name is the task's.
        reader: of the lines of its files, where they are no plain items.

    Raises:
        UserError: the file cannot be read, or describes none.
    """
    content = read_object(path)
    patterns, metric = content.get("pattern"), content.get("metric")
    if isinstance(patterns, str | list):
        several = [patterns] if isinstance(patterns, str) else patterns
        content["pattern"] = [{"text": one} if isinstance(one, str) else one for one in several]
    if isinstance(metric, str):
        content["metric"] = [metric, *(name for name in METRICS if name != metric)]
    try:
        return _task(path.stem, from_json(Description, content, where="the task"), reader)
    except ValueError as error:
        raise UserError(
            f"{path} does not describe a task: {error}. Expected a pattern, and one of verbalizer, "
            "choices, choices_field and answer (docs/finetuning.md)."
        ) from error


def _task(name: str, said: Description, reader: Reader | None) -> Task:
    """Return a task; ValueError where what is described is none."""
    described = _Described(
        name=name,
        said=said,
        patterns=tuple(_pattern(one, said) for one in said.pattern),
        choices=tuple(map(parse, said.choices)),
        answer=parse(said.answer) if said.answer else (),
        reader=reader,
    )
    _check(described)
    measure, hand_in = reader and reader.measure, reader and reader.hand_in
    labels, key = tuple(said.verbalizer), said.name or "idx"
    takes = ("length", "pattern") if said.answer else ("form", "length", "pattern")
    return Task(
        name=name,
        ask=described.ask,
        measure=rouge_and_exact if said.answer else measure or measured_by(said.metric),
        hand_in=written if said.answer else hand_in or labelled(labels, key=key),
        defaults=Options(pattern=said.default, form=said.form, length=said.length),
        num_patterns=len(said.pattern),
        takes=(*takes, *(reader.takes if reader else ())),
        is_written=bool(said.answer),
    )


def _pattern(wording: Wording, said: Description) -> Pattern:
    own = wording.verbalizer
    if own and own.keys() != said.verbalizer.keys():
        raise ValueError(f"the words of {wording.text!r} are not for the labels of verbalizer")
    return Pattern(
        template=parse(wording.text),
        words=tuple((own or said.verbalizer)[label] for label in said.verbalizer),
        filler=parse(wording.filler) if wording.filler else None,
    )


def _check(task: _Described) -> None:
    """Refuse what is no task: ValueError."""
    said = task.said
    kinds = [said.verbalizer, said.choices, said.choices_field, said.answer]
    if sum(map(bool, kinds)) != 1:
        raise ValueError("it has not one of verbalizer, choices, choices_field and answer")
    if not task.patterns or any(map(masks_of, (*task.choices, task.answer))):
        raise ValueError("an answer has a blank" if task.patterns else "there is no pattern")
    for wording, pattern in zip(said.pattern, task.patterns, strict=True):
        blanks = len(masks_of(pattern.template))
        if blanks > 1 or not (blanks or said.answer):
            raise ValueError(f"the pattern {wording.text!r} has {blanks} blanks, not one [MASK]")
    for answers in (*(pattern.words for pattern in task.patterns), said.choices):
        _check_answers(answers)
    for name, given, known in (
        *(("metric", one, tuple(METRICS)) for one in said.metric),
        ("form", said.form, FORMS),
        ("default", said.default, range(len(task.patterns))),
    ):
        if given not in known:
            raise ValueError(f"{name} is {given!r}, not one of {', '.join(map(str, known))}")


def _check_answers(answers: Sequence[str]) -> None:
    """Refuse words or choices of which one could not be chosen: ValueError."""
    if len(answers) == 1:
        raise ValueError("there is only one answer to choose from")
    if repeated := [answer for answer in answers if answers.count(answer) > 1]:
        raise ValueError(f"{repeated[0]!r} is there for more than one answer")
