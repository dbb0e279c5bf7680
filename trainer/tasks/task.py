"""A task: what its files ask of a model, how answers are counted, how they are handed in.

    examples = task.examples(path, split=TRAIN, tokenizer=tokenizer, options=PromptOptions())
    given = [one.answer for one in predict(model, examples)]
    task.metrics(questions, given)    {"accuracy": 98.0}
    task.lines(questions, given)      [{"idx": 0, "label": 1}, …]

`catalogue.find_task` finds one by its name, or makes one of a file.
"""

import json
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from shards.errors import UserError
from shards.flags import flag_of, given, option, positive
from trainer.tasks.description import FORMS, SPELLED, Description, Pattern
from trainer.tasks.figures import Figures, chosen_figures, text_figures
from trainer.tasks.items import NAME, Item, read_items
from trainer.tasks.rows import Answer, Example, LazyRows, Row, blank_row, causal_row
from trainer.tasks.suggestion import suggested_task
from trainer.tasks.template import Part, masks_of, parse, shorten, strings_of, text_of
from trainer.tokenizer import TextTokenizer

TRAIN, VALIDATION, TEST = SPLITS = ("train", "val", "test")
TARGET_LENGTH = 128
"""Tokens of a text that is written, where --target-length is not given."""

ASKED = "how items are asked"
"""The title of `PromptOptions` in `--help`."""
_SUFFIXES = (".jsonl", ".json", ".source")
_FEWEST = 2
"""Choices of an item."""

Lines = list[dict[str, Any]]
MadeRow = tuple[Callable[[], Row], bool]
"""What makes a row, and whether text was cut for it."""


@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """How a task's items become questions; flags of every command that asks them."""

    pattern: int | None = option(None, type=int, metavar="N", group=ASKED)
    """Which of the task's patterns, from 0 on. Default: the task's."""
    length: int | None = option(None, type=positive, metavar="N")
    """Tokens of a row at most. Default: the task's."""
    form: str | None = option(None, choices=FORMS)
    """cloze: a word or an answer fills a blank. spelled: words too are scored as answers, which may
    be of several tokens. Default: the task's."""
    candidates: bool = option(False)
    """WSC: let other names compete with the one asked about."""
    source_length: int | None = option(None, type=positive, metavar="N")
    """Sequence to sequence: tokens of a source at most. Default: the task's."""
    target_length: int | None = option(None, type=positive, metavar="N")
    """Sequence to sequence: tokens of a target at most. Default: the task's."""
    cut_targets: bool = option(False)
    """Sequence to sequence: cut targets that are longer, rather than refuse them."""
    hide_padding: bool = option(False)
    """Sequence to sequence: no padding between source and target, which the reference shows to the
    model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodeContext:
    """All that items need to become questions."""

    options: PromptOptions
    pattern: Pattern
    form: str
    """One of FORMS."""
    length: int
    """Tokens of a row at most."""
    tokenizer: TextTokenizer
    split: str
    """One of SPLITS."""
    is_causal: bool
    """The model reads from left to right, and has no blanks."""
    task_mask: bool
    """The model knows [sMASK] and [gMASK] beside [MASK]."""

    @property
    def is_train(self) -> bool:
        """Whether the answers are to be learnt."""
        return self.split == TRAIN

    @property
    def is_test(self) -> bool:
        """Whether the answers need not be known."""
        return self.split == TEST

    def blank(self, kind: str) -> str:
        """Return the blank to ask with where a kind is meant: mask, if the model lacks that one."""
        return kind if self.task_mask and kind in self.tokenizer.special else "mask"

    def guid(self, name: object) -> str:
        """Return the guid of an item, such as dev-3."""
        return f"{'dev' if self.split == VALIDATION else self.split}-{name}"

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text; white space alone has none, as in the reference."""
        return list(self._encode(text)) if text.strip() else []

    @cached_property
    def _encode(self) -> Callable[[str], list[int]]:
        # Patterns, words and passages come again and again.
        return lru_cache(maxsize=1024)(self.tokenizer.encode)

    def fitted(self, strings: Sequence[Part], item: Item, *, taken: int) -> tuple[list[int], bool]:
        """Return the ids of a pattern, cut to what is left of the length, and whether they were.

        Args:
            strings: of the pattern.
            item: what an error is about.
            taken: tokens that the row has besides.

        Raises:
            UserError: they do not fit, and nothing is left that may be cut.
        """
        special = self.tokenizer.special
        ids = [[special[one.mask]] if one.mask else self.ids(one.text) for one in strings]
        size = taken + sum(map(len, ids))
        if not shorten(ids, [one.cut for one in strings], size - self.length):
            raise item.wrong(
                f"the pattern with its answer has {size} tokens, --length is {self.length}, and "
                "cutting all that may be cut is not enough. Make it longer, as far as the model "
                "has positions; else shorten the item, or leave it out. A pattern of one's own may "
                "say what else may be cut: {name:cut}."
            )
        return [i for several in ids for i in several], size > self.length

    def filled(self, strings: Sequence[Part], answer: Sequence[int], item: Item) -> MadeRow:
        """Return the row of a pattern with a blank and its answer.

        Part A ends with eos, unless it ends with [gMASK], after which a text simply goes on.

        Args:
            strings: of the pattern; exactly one is a blank.
            answer: with the token that ends it; none: what follows sop is asked for.
            item: what an error is about.

        Raises:
            UserError: as for `fitted`.
        """
        special = self.tokenizer.special
        mask = special[next(one.mask for one in strings if one.mask)]
        ending = [] if strings[-1].mask == "gmask" else [special["eos"]]
        taken = 1 + len(ending) + max(1, len(answer))
        ids, was_cut = self.fitted(strings, item, taken=taken)
        made = partial(
            blank_row,
            np.array([special["cls"], *ids, *ending], np.int32),
            mask_at=1 + ids.index(mask),
            sop=special["sop"],
            answer=np.array(answer, np.int32),
        )
        return made, was_cut


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskReader:
    """What a task needs beside its description, where its items are no plain ones."""

    takes: tuple[str, ...] | None = None
    """The fields of `PromptOptions` that mean something to it; None: those of its kind."""
    asked: Callable[[Sequence[Item], EncodeContext], Iterable[tuple[Item, Example]]] | None = None
    """Returns the fields of the pattern for each question, and what is known of it."""
    row: Callable[[Item, str, EncodeContext], MadeRow] | None = None
    """Returns the row of a text that is written, with its answer, if that is learnt."""
    metrics: Callable[[Sequence[Example], Sequence[Answer]], Figures] | None = None
    label: Callable[[Example, Answer], Any] | None = None
    """Returns what a prediction is handed in as."""
    lines: Callable[[Lines], Lines] | None = None
    """Returns the lines of predictions, {"idx": …, "label": …}, as they are handed in."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A task; see the module."""

    name: str
    said: Description
    reader: TaskReader = TaskReader()

    @property
    def is_written(self) -> bool:
        """Whether answers are written by a decoder, not chosen; predictions are texts."""
        return self.said.answer is not None

    @property
    def takes(self) -> tuple[str, ...]:
        """The fields of `PromptOptions` that mean something to the task."""
        kind = ("length", "pattern") if self.is_written else ("form", "length", "pattern")
        return self.reader.takes or kind

    def examples(
        self,
        path: Path,
        *,
        split: str,
        tokenizer: TextTokenizer,
        options: PromptOptions,
        is_causal: bool = False,
        task_mask: bool = True,
    ) -> list[Example]:
        """Return the questions of a file, in the order of training or evaluation.

        Args:
            path: a file, or a folder that holds one of the split's name.
            split: one of SPLITS. Only for TRAIN are there mirrors, and labels for all.
            tokenizer: the model's.
            options: the flags.
            is_causal: the model reads from left to right, and has no blanks.
            task_mask: it knows [sMASK] and [gMASK] beside [MASK] (`trained.LoadedModel`).

        Raises:
            UserError: the pattern is not for the model; an item lacks a field, has an unknown
                label or the name of another, or does not fit; says which.
        """
        context = EncodeContext(
            options=options,
            pattern=self._pattern(options),
            form=options.form or self.said.form,
            length=options.length or self.said.length,
            tokenizer=tokenizer,
            split=split,
            is_causal=is_causal,
            task_mask=task_mask,
        )
        self._check_blank(context)
        file = self.file(path, split) if path.is_dir() else path
        items = read_items(file)
        self._check_fields(items, context)
        asked = (self.reader.asked or self._asked)(items, context)
        with_rows = self._written if self.is_written else self._chosen
        questions, lines = [], dict[str, int]()
        for item, question in asked:
            name = question.guid if self.reader.asked else json.dumps(question.idx, sort_keys=True)
            if name in lines:
                raise item.wrong(
                    f"its name, {name}, is that of line {lines[name]} too: nobody could tell their "
                    'predictions apart. Give each item its own "idx", or leave it out of all.'
                )
            lines[name] = item.line
            questions.append(with_rows(item, question, context))
        if not questions:
            raise UserError(f"{file} holds nothing to ask for the task {self.name}.")
        return questions

    def metrics(self, questions: Sequence[Example], predictions: Sequence[Answer]) -> Figures:
        """Return figures by name; the first picks the best epoch, the more the better.

        Questions without a known answer may not be among them.
        """
        if self.reader.metrics:
            return self.reader.metrics(questions, predictions)
        figures = (text_figures if self.is_written else chosen_figures)(questions, predictions)
        return {name: figures[name] for name in self.said.metric}

    def lines(self, questions: Sequence[Example], predictions: Sequence[Answer]) -> Lines:
        """Return predictions as they are handed in, one JSON object a line."""
        pairs = zip(questions, predictions, strict=True)
        if self.is_written:
            return [{"idx": q.idx, "prediction": text, **(q.facts or {})} for q, text in pairs]
        key, label = self.said.name or "idx", self.reader.label or self._label
        lines = [{key: question.idx, "label": label(question, given)} for question, given in pairs]
        return self.reader.lines(lines) if self.reader.lines else lines

    def _label(self, _: Example, given: Answer) -> Any:
        labels = tuple(self.said.verbalizer)
        return labels[int(given)] if labels else int(given)

    def file(self, folder: Path, split: str) -> Path:
        """Return a split's file in a folder: val.jsonl, or as CLUE and GLM name it."""
        stems = (split, "dev") if split == VALIDATION else (split,)
        names = [f"{stem}{suffix}" for suffix in _SUFFIXES for stem in stems]
        return next(
            (folder / name for name in names if (folder / name).is_file()), folder / names[0]
        )

    def _pattern(self, options: PromptOptions) -> Pattern:
        """Return the pattern to ask by; UserError where there is no use for a flag."""
        for name in given(options):
            if name not in self.takes:
                raise UserError(f"{flag_of(name)}: the task {self.name} has no use for it.")
        number = self.said.default if options.pattern is None else options.pattern
        if not 0 <= number < len(self.said.pattern):
            raise UserError(
                f"--pattern {number}: the task {self.name} has {len(self.said.pattern)}, numbered "
                "from 0 on."
            )
        return self.said.pattern[number]

    def _check_blank(self, context: EncodeContext) -> None:
        """Check that a model knows the blank of a pattern."""
        masks = masks_of(context.pattern.text)
        if masks and context.is_causal:
            raise UserError(
                "this task fills blanks, and the model reads from left to right. Take a model that "
                "was trained with the objective glm, or a task without a blank (prompted)."
            )
        unknown = [mask for mask in masks if context.blank(mask) != mask]
        if unknown and not self.reader.row:
            raise UserError(
                f"the task {self.name}: the pattern {context.pattern.text!r} has a blank that the "
                f"model does not know: it was trained without task masks, or "
                f"{context.tokenizer.spec} has no such token. Write [MASK] there."
            )

    def _check_fields(self, items: Sequence[Item], context: EncodeContext) -> None:
        """Check that a text's prompt and answer have fields; else name the task that reads them."""
        if not (self.is_written and items):
            return
        answer = "" if context.is_test else self.said.answer or ""
        names = [part.field for text in (context.pattern.text, answer) for part in parse(text)]
        lacking = [name for name in names if name.strip("|") and not items[0].has(*name.split("."))]
        suggested = suggested_task(items[0].fields) if lacking else None
        if suggested:
            raise items[0].wrong(
                f'the task {self.name} reads the field "{lacking[0]}", and there are '
                f"{', '.join(map(str, items[0].fields))}. Write a task that reads these, for "
                f"example a file task.json with {suggested}, and give it instead of {self.name}: "
                "--task task.json."
            )

    def _asked(
        self, items: Sequence[Item], context: EncodeContext
    ) -> Iterator[tuple[Item, Example]]:
        """Yield plain items, and what is known of them."""
        said = self.said
        for number, item in enumerate(items):
            name = item.value(said.name, of=NAME) if said.name else item.name(number)
            label = None
            if not self.is_written:
                labels = tuple(said.verbalizer) or range(len(self._choices(item)))
                label = item.label(labels, is_needed=not context.is_test, key=said.label)
            guid = context.guid(name if said.name else number)
            yield item, Example(guid=guid, idx=name, label=label)

    def _chosen(self, item: Item, question: Example, context: EncodeContext) -> Example:
        """Return a question of which answer fills the blank of a pattern best."""
        pattern = context.pattern
        words = self.said.words(pattern)
        answers = words or self._choices(item)
        if question.facts is None:  # of others the reader knows which ones are right
            _check_differ(answers, context, item)
        if words and context.form != SPELLED:
            ids = tuple(_word(word, context, item) for word in words)
            made = [context.filled(list(strings_of(pattern.text, item)), (), item)]
        else:
            ids = ()
            filled = [item] * len(answers)
            if pattern.filler:
                fields = [{**item.fields, "choice": answer} for answer in answers]
                filled = [replace(item, fields=several) for several in fields]
                answers = [text_of(pattern.filler, one) for one in filled]
            made = [
                context.filled(
                    list(strings_of(pattern.text, one)), _spelled(answer, context, item), item
                )
                for one, answer in zip(filled, answers, strict=True)
            ]
        return _with_rows(question, made, words=ids)

    def _choices(self, item: Item) -> Sequence[str]:
        name = self.said.choices_field
        if name is None:
            return [text_of(template, item) for template in self.said.choices]
        values = item.value(*name.split("."))
        are_texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
        if not are_texts or (self.reader.asked is None and len(values) < _FEWEST):
            raise item.wrong(f'the field "{name}" is no list of at least {_FEWEST} texts.')
        return list(values)

    def _written(self, item: Item, question: Example, context: EncodeContext) -> Example:
        """Return a question whose answer is written."""
        template = self.said.answer or ""
        fields = [part.field.split(".") for part in parse(template) if part.field]
        is_known = not context.is_test or all(item.has(*keys) for keys in fields)
        reference = text_of(template, item) if is_known else None
        if context.is_train and not (reference or "").strip():
            raise item.wrong("the answer is empty: there is nothing to learn.")
        learnt = reference if context.is_train and reference else ""
        made = (self.reader.row or _prompted)(item, learnt, context)
        return _with_rows(replace(question, facts={"reference": reference}), [made])


def _with_rows(question: Example, made: Sequence[MadeRow], words: tuple[int, ...] = ()) -> Example:
    rows = LazyRows([make for make, _ in made])
    num_shortened = sum(was_cut for _, was_cut in made)
    return replace(question, rows=rows, num_shortened=num_shortened, words=words)


def _prompted(item: Item, answer: str, context: EncodeContext) -> MadeRow:
    """Return the row of a prompt with its answer, if there is one."""
    special, ids = context.tokenizer.special, context.ids(answer)
    strings = list(strings_of(context.pattern.text, item))
    if context.is_causal:
        prompt, was_cut = context.fitted(strings, item, taken=len(ids))
        if not prompt:
            raise item.wrong("the prompt is empty, and a model that reads on needs one.")
        targets = [*ids, special["eos"]] if ids else []
        return partial(causal_row, np.array(prompt, np.int32), targets), was_cut
    if not any(one.mask for one in strings):  # it goes on at its end, white space there dropped
        *first, last = strings or [Part()]
        end = Part(mask=context.blank("gmask"))
        strings = [*first, replace(last, text=last.text.rstrip()), end]
    return context.filled(strings, [*ids, special["eop"]] if ids else [], item)


def _spelled(answer: str, context: EncodeContext, item: Item) -> list[int]:
    """Return an answer's ids with the token that ends it."""
    ids = context.ids(answer)
    if not ids:
        raise item.wrong(f"an answer is empty ({answer!r}): every choice needs a text.")
    return [*ids, context.tokenizer.special["eop"]]


def _word(answer: str, context: EncodeContext, item: Item) -> int:
    """Return the one id of a word."""
    ids = context.ids(answer)
    if len(ids) != 1:
        raise item.wrong(
            f"the word {answer!r} has {len(ids)} tokens with {context.tokenizer.spec}, and one "
            f"fills a blank. Take --form {SPELLED}, or another word."
        )
    return ids[0]


def _check_differ(answers: Sequence[str], context: EncodeContext, item: Item) -> None:
    """Check that no two answers are the same to a model: one would be right, and one wrong."""
    numbers: dict[tuple[int, ...], int] = {}
    for number, answer in enumerate(answers):
        before = numbers.setdefault(tuple(context.ids(answer)), number)
        if before != number:
            raise item.wrong(
                f"the choices {before} and {number} are the same tokens, "
                f"{reprlib.repr(answers[before])} and {reprlib.repr(answer)}: nothing tells the "
                "right one from the wrong one. Correct the item or the words, or leave it out."
            )
