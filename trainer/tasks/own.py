"""Tasks of one's own, each described by one small JSON file (docs/tasks.md).

{"pattern": "{text:cut} It was [MASK].", "verbalizer": {"bad": " awful", "good": " great"}}
{"pattern": "{start:cut} [MASK]", "choices": ["{end1}", "{end2}"]}
{"pattern": "{question}", "answer": "{reply}"}
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.records import from_json
from trainer.json_file import read_object
from trainer.tasks.cloze import Pattern, Piece, fill, fitted
from trainer.tasks.counting import accuracy_and_macro_f1, labelled, per_cent
from trainer.tasks.draft import Draft, check_differ, questions_of
from trainer.tasks.items import Item, names_of, read_items
from trainer.tasks.question import Question
from trainer.tasks.rouge import rouge
from trainer.tasks.rows import BlankRows, Row, causal_row
from trainer.tasks.task import TEST, Asked, Defaults, Prediction, Task
from trainer.tasks.template import Part, blanks, parse, pattern, plain_text

_FEWEST = 2
"""Choices of an item."""
_METRICS = ("accuracy", "f1-macro")

Figures = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a file says of a task."""

    pattern: tuple[str, ...]
    """Templates, numbered from 0 on."""
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
    metric: str = "accuracy"
    """accuracy or f1-macro: what picks the best epoch."""
    length: int = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class _Own:
    """A task of one's own, its templates parsed."""

    name: str
    description: Description
    patterns: tuple[tuple[Part, ...], ...]
    choices: tuple[tuple[Part, ...], ...]
    answer: tuple[Part, ...]

    def ask(self, path: Path, asked: Asked) -> list[Question]:
        """Return the questions of a file.

        Raises:
            UserError: the pattern or the words are not for this model, an item not for the task.
        """
        self._check_model(asked)
        items = read_items(path)
        names = names_of(items)
        if self.answer:
            return [self._written(item, at, names[at], asked) for at, item in enumerate(items)]
        return questions_of(self._drafts(items, names, asked), asked)

    def _check_model(self, asked: Asked) -> None:
        """Check that a model knows the blank, and tells the words apart."""
        kinds = {part.mask for part in self.patterns[asked.pattern] if part.mask}
        unknown = [kind for kind in sorted(kinds) if asked.blank(kind) != kind]
        if unknown and not asked.is_causal:
            mark = f"[{unknown[0][:-4]}MASK]"
            why = (
                f"the tokenizer {asked.tokenizer.spec} has no such token"
                if asked.task_mask
                else "the model was trained without task masks"
            )
            raise UserError(
                f"the task {self.name}: pattern {asked.pattern} has {mark}, and {why}. Write "
                "[MASK] there."
            )
        labels: dict[tuple[int, ...], str] = {}
        for label, word in self.description.verbalizer.items():
            before = labels.setdefault(tuple(asked.ids(word)), label)
            if before != label:
                raise UserError(
                    f"the task {self.name}: the words of {before} and {label}, "
                    f"{self.description.verbalizer[before]!r} and {word!r}, are the same tokens "
                    f"with {asked.tokenizer.spec}, so that no answer tells the two apart. Give "
                    "each label another word."
                )

    def _drafts(self, items: Sequence[Item], names: Sequence[Any], asked: Asked) -> Iterator[Draft]:
        words = self.description.verbalizer
        for number, item in enumerate(items):
            answers = tuple(words.values()) or self._choices(item, asked)
            filled = pattern(self.patterns[asked.pattern], item)
            text = "".join(
                piece.text for group in filled.groups for piece in group if not piece.mask
            )
            yield Draft(
                item=item,
                name=number,
                idx=names[number],
                label=item.label(
                    tuple(words) or range(len(answers)),
                    is_needed=asked.split != TEST,
                    key=self.description.label,
                ),
                patterns=(filled,),
                answers=answers,
                are_words=bool(words),
                pairs=((text, ""),) if words else tuple((text, choice) for choice in answers),
            )

    def _choices(self, item: Item, asked: Asked) -> tuple[str, ...]:
        choices = self._texts(item)
        check_differ(choices, asked, item=item)
        return choices

    def _texts(self, item: Item) -> tuple[str, ...]:
        name = self.description.choices_field
        if name is None:
            return tuple(plain_text(parts, item) for parts in self.choices)
        values = item.value(*name.split("."))
        are_texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
        if not are_texts or len(values) < _FEWEST:
            raise item.wrong(f'the field "{name}" is no list of at least {_FEWEST} texts.')
        return tuple(values)

    def _written(self, item: Item, number: int, name: Any, asked: Asked) -> Question:
        filled = pattern(self.patterns[asked.pattern], item)
        is_known = asked.split != TEST or all(
            item.has(*part.field.split(".")) for part in self.answer if part.field
        )
        reference = plain_text(self.answer, item) if is_known else None
        ids = asked.ids(reference) if reference and asked.is_train else []
        if asked.is_train and not ids:
            raise item.wrong("the answer is empty: there is nothing to learn.")
        rows, was_cut = _answered(filled, ids, asked, item=item)
        return Question(
            guid=asked.guid(number),
            idx=name,
            rows=rows,
            num_shortened=int(was_cut),
            facts={"reference": reference},
        )


def _answered(
    filled: Pattern, ids: list[int], asked: Asked, *, item: Item
) -> tuple[Sequence[Row], bool]:
    """Return the row of a prompt with its answer, if there is one, and whether it was cut."""
    special = asked.tokenizer.special
    has_blank = any(piece.mask for piece in filled.groups[0])
    if not asked.is_causal:
        whole = filled if has_blank else _with_end(filled, asked.blank("gmask"))
        answer = [*ids, special["eop"]] if ids else []
        blank, was_cut = fill(whole, answer, asked, item=item)
        return BlankRows([blank]), was_cut
    if has_blank:
        raise item.wrong(
            "the pattern has a blank, and the model reads from left to right: leave the blank out, "
            "the answer then follows the pattern."
        )
    context, was_cut = fitted(filled, asked, item=item, taken=len(ids))
    if not context:
        raise item.wrong("the prompt is empty, and a model that reads on needs one.")
    return (causal_row(context, [*ids, special["eos"]] if ids else []),), was_cut


def _with_end(filled: Pattern, blank: str) -> Pattern:
    """Return a prompt that goes on at its end, white space there dropped."""
    *pieces, last = filled.groups[0]
    trimmed = Piece(last.text.rstrip(), may_shrink=last.may_shrink)
    return Pattern((*pieces, trimmed, Piece("", mask=blank)))


def read_task(path: Path) -> Task:
    """Return the task that a file describes.

    Raises:
        UserError: the file cannot be read, or describes none.
    """
    content = read_object(path)
    if isinstance(content.get("pattern"), str):
        content["pattern"] = [content["pattern"]]
    try:
        return make_task(path.stem, from_json(Description, content, where="the task"))
    except ValueError as error:
        raise UserError(
            f"{path} does not describe a task: {error}. Expected a pattern, and one of verbalizer, "
            "choices, choices_field and answer (docs/tasks.md)."
        ) from error


def make_task(name: str, description: Description) -> Task:
    """Return a task.

    Raises:
        ValueError: what is described is none.
    """
    own = _Own(
        name=name,
        description=description,
        patterns=tuple(map(parse, description.pattern)),
        choices=tuple(map(parse, description.choices)),
        answer=parse(description.answer) if description.answer else (),
    )
    _check(own)
    return Task(
        name=name,
        ask=own.ask,
        measure=_measure_texts if own.answer else _measuring(description.metric),
        hand_in=_texts if own.answer else labelled(tuple(description.verbalizer) or None),
        defaults=Defaults(
            num_patterns=len(own.patterns),
            length=description.length,
            takes=("length", "pattern") if own.answer else ("form", "length", "pattern"),
        ),
        is_written=bool(own.answer),
    )


def _check(own: _Own) -> None:
    """Refuse what is no task: ValueError."""
    said = own.description
    kinds = [said.verbalizer, said.choices, said.choices_field, said.answer]
    if sum(map(bool, kinds)) != 1:
        raise ValueError("it has not one of verbalizer, choices, choices_field and answer")
    if not own.patterns or any(blanks(parts) for parts in (*own.choices, own.answer)):
        raise ValueError("there is no pattern" if not own.patterns else "an answer has a blank")
    for text, parts in zip(said.pattern, own.patterns, strict=True):
        if blanks(parts) > 1 or not (blanks(parts) or own.answer):
            raise ValueError(f"the pattern {text!r} has {blanks(parts)} blanks, not one [MASK]")
    for answers in (tuple(said.verbalizer.values()), said.choices):
        _check_answers(answers)
    if said.metric not in _METRICS:
        raise ValueError(f"metric is {said.metric!r}, not one of {', '.join(_METRICS)}")


def _check_answers(answers: tuple[str, ...]) -> None:
    """Refuse words or choices of which one could not be chosen: ValueError."""
    if len(answers) == 1:
        raise ValueError("there is only one answer to choose from")
    if repeated := [answer for answer in answers if answers.count(answer) > 1]:
        raise ValueError(f"{repeated[0]!r} is there for more than one answer")


def _measuring(first: str) -> Callable[[Sequence[Question], Sequence[Prediction]], Figures]:
    """Return what counts, with one figure in front of the others."""

    def measure(questions: Sequence[Question], predictions: Sequence[Prediction]) -> Figures:
        figures = accuracy_and_macro_f1(questions, predictions)
        return {first: figures[first], **figures}

    return measure


def _measure_texts(questions: Sequence[Question], predictions: Sequence[Prediction]) -> Figures:
    """Return ROUGE, and how many texts are just what they should be, in per cent."""
    references = [str((question.facts or {})["reference"]).strip() for question in questions]
    texts = [str(text).strip() for text in predictions]
    figures = rouge(references, texts)
    hits = [one == other for one, other in zip(references, texts, strict=True)]
    return {"rouge-l": figures["rouge-l"], "exact": per_cent(hits), **figures}


def _texts(
    questions: Sequence[Question], predictions: Sequence[Prediction]
) -> list[dict[str, Any]]:
    return [
        {"idx": question.idx, "prediction": text, **(question.facts or {})}
        for question, text in zip(questions, predictions, strict=True)
    ]


PROMPTED = make_task("prompted", Description(pattern=("{prompt}",), answer="{answer}", length=1024))
"""Instructions: JSON lines of prompt and answer."""
