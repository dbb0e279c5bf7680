"""Makes examples of a task's items, measures answers, and formats answers for submission.

    examples = task.examples(path, split=TRAIN, tokenizer=tokenizer, options=PromptOptions())
    given = [one.answer for one in predict(model, examples)]
    task.metrics(examples, given)    {"accuracy": 98.0}
    task.prediction_lines(examples, given)    [{"idx": 0, "label": 1}, …]

`catalogue.find_task` returns a task by its name or from a JSON file. Answers are chosen
(choices.py) or generated (texts.py).
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from shards.commands.flags import flag_of, non_defaults, option, positive
from shards.errors import UserError
from trainer.tasks.description import FORMS, Description, Pattern
from trainer.tasks.items import NAME, Item, read_items
from trainer.tasks.metrics import Metrics
from trainer.tasks.rows import Answer, Example, Row
from trainer.tasks.template import TemplatePart, masks_of, shorten
from trainer.tokenizer import PromptFormat, TextTokenizer

TRAIN, VALIDATION, TEST = SPLITS = ("train", "val", "test")

ASKED = "prompts"
"""The title of `PromptOptions` in `--help`."""
_SUFFIXES = (".jsonl", ".json", ".source")

Lines = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """Options for making examples from a task's items, which are flags of several commands."""

    pattern: int | None = option(None, type=int, metavar="N", group=ASKED)
    """Number of the task's prompt pattern, counted from 0. Default: the task's."""
    length: int | None = option(None, type=positive, metavar="N")
    """Maximum number of tokens per row. Default: the task's."""
    form: str | None = option(None, choices=FORMS)
    """cloze: a word or an answer fills a blank. spelled: words are also scored as answers, which
    may have several tokens. Default: the task's."""
    candidates: bool = option(False)
    """WSC: score the other candidates of an item as wrong answers."""
    source_length: int | None = option(None, type=positive, metavar="N")
    """Sequence to sequence: maximum number of tokens per source. Default: the task's."""
    target_length: int | None = option(None, type=positive, metavar="N")
    """Sequence to sequence: maximum number of tokens per target. Default: the task's."""
    cut_targets: bool = option(False)
    """Sequence to sequence: cut longer targets instead of refusing them."""
    hide_padding: bool = option(False)
    """Sequence to sequence: hide the padding between source and target, which the model sees in the
    reference implementation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodeContext:
    """The parameters for making examples of items."""

    options: PromptOptions
    pattern: Pattern
    form: str
    """One of FORMS."""
    length: int
    """The maximum number of tokens of a row."""
    tokenizer: TextTokenizer
    split: str
    """One of SPLITS."""
    prompt_format: PromptFormat

    @property
    def is_train(self) -> bool:
        """Whether the model is trained on the answers."""
        return self.split == TRAIN

    @property
    def is_test(self) -> bool:
        """Whether answers may be missing."""
        return self.split == TEST

    def blank(self, kind: str) -> str:
        """Return the role of the blank token for a kind, or `mask` if the model lacks that kind."""
        is_known = self.prompt_format.task_mask and kind in self.tokenizer.special
        return kind if is_known else "mask"

    def guid(self, name: object) -> str:
        """Return the guid of an item, such as dev-3."""
        return f"{'dev' if self.split == VALIDATION else self.split}-{name}"

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text; none if it has only white space, as in THUDM/GLM."""
        return list(self._encode(text)) if text.strip() else []

    @cached_property
    def _encode(self) -> Callable[[str], list[int]]:
        # Patterns, words and passages repeat.
        return lru_cache(maxsize=1024)(self.tokenizer.encode)

    def fit(
        self, strings: Sequence[TemplatePart], item: Item, *, taken: int
    ) -> tuple[list[int], bool]:
        """Return the ids of a pattern, cut to fit the length, and whether they were cut.

        Args:
            strings: the strings of the pattern.
            item: the item, for errors.
            taken: the number of tokens of the row that are not in the pattern.

        Raises:
            UserError: the row is too long, even after cutting all that may be cut.
        """
        special = self.tokenizer.special
        ids = [[special[one.mask]] if one.mask else self.ids(one.text) for one in strings]
        size = taken + sum(map(len, ids))
        if not shorten(ids, [one.cut for one in strings], size - self.length):
            raise item.wrong(
                f"the pattern with its answer has {size} tokens, --length is {self.length}, and "
                "cutting all that may be cut is not enough. Make it longer, as far as the model "
                "has positions; else shorten the item, or leave it out. Your own pattern may "
                "mark more fields that may be cut: {name:cut}."
            )
        return [i for several in ids for i in several], size > self.length

    def blank_row(self, strings: Sequence[TemplatePart], answer: Sequence[int], item: Item) -> Row:
        """Return the row of a pattern with a blank and its answer.

        Part A ends with eos, unless it ends with [gMASK], after which the text continues.

        Args:
            strings: the strings of the pattern; exactly one is a blank.
            answer: the answer with the token that ends it; empty if the model generates it.
            item: the item, for errors.

        Raises:
            UserError: as for `fit`.
        """
        special = self.tokenizer.special
        mask = special[next(one.mask for one in strings if one.mask)]
        ending = [] if strings[-1].mask == "gmask" else [special["eos"]]
        taken = 1 + len(ending) + max(1, len(answer))
        ids, was_cut = self.fit(strings, item, taken=taken)
        return Row(
            [special["cls"], *ids, *ending],
            answer,
            mask_at=1 + ids.index(mask),
            sop=special["sop"],
            was_cut=was_cut,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Task(ABC):
    """A fine-tuning task."""

    name: str
    description: Description

    USED_OPTIONS: ClassVar[tuple[str, ...]]
    """The fields of `PromptOptions` that the task uses."""
    IS_GENERATED: ClassVar[bool]
    """Whether answers are generated texts rather than choices."""
    NEEDS_OWN_BLANK: ClassVar[bool] = True
    """Whether the model must know the blank of the pattern; otherwise [MASK] replaces it."""

    @abstractmethod
    def metrics(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Metrics:
        """Return the metrics by name; the first picks the best epoch, and higher is better.

        The answers to all examples must be known.
        """

    @abstractmethod
    def prediction_lines(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Lines:
        """Return answers in the format for submission, one JSON object per line."""

    @abstractmethod
    def encode(self, item: Item, example: Example, context: EncodeContext) -> Example:
        """Return an example with its rows."""

    def expand(
        self, items: Sequence[Item], context: EncodeContext
    ) -> Iterable[tuple[Item, Example]]:
        """Yield items with the pattern's fields, each with an example that has no rows yet."""
        key = self.description.name
        for number, item in enumerate(items):
            name = item.value(key, of=NAME) if key else item.name(number)
            guid = context.guid(name if key else number)
            yield item, Example(guid=guid, idx=name, label=self.label(item, context))

    def label(self, item: Item, context: EncodeContext) -> int | None:  # noqa: ARG002
        """Return the number of an item's right choice; None if there are no choices."""
        return None

    def examples(
        self,
        path: Path,
        *,
        split: str,
        tokenizer: TextTokenizer,
        options: PromptOptions,
        prompt_format: PromptFormat = PromptFormat(),  # noqa: B008  it is frozen
    ) -> list[Example]:
        """Return the examples of a file, in the order of training or evaluation.

        Args:
            path: a file, or a folder with a file for the split.
            split: one of SPLITS. TRAIN needs labels of all items, and may add examples, such as
                those of COPA with swapped choices.
            tokenizer: the tokenizer of the model.
            options: the options for prompts.
            prompt_format: the properties of the model (`LoadedModel.source.prompt_format`).

        Raises:
            UserError: the pattern does not suit the model; or an item, which the message names,
                lacks a field, has an unknown label or a repeated name, or is too long.
        """
        context = EncodeContext(
            options=options,
            pattern=self._pattern(options),
            form=options.form or self.description.form,
            length=options.length or self.description.length,
            tokenizer=tokenizer,
            split=split,
            prompt_format=prompt_format,
        )
        self._check_blank(context)
        file = self.file(path, split) if path.is_dir() else path
        items = read_items(file)
        self.check_fields(items[:1], context)
        examples, places = [], dict[str, str]()
        for item, example in self.expand(items, context):
            is_plain = type(self).expand is Task.expand
            name = json.dumps(example.idx, sort_keys=True) if is_plain else example.guid
            if name in places:
                raise item.wrong(
                    f"its name, {name}, is also that of {places[name]}, so their predictions could "
                    'not be distinguished. Give each item its own "idx", or remove all of them.'
                )
            places[name] = item.place
            examples.append(self.encode(item, example, context))
        if not examples:
            raise UserError(f"{file} contains no items for the task {self.name}.")
        return examples

    def file(self, folder: Path, split: str) -> Path:
        """Return a split's file in a folder: SPLIT.jsonl, or a name that CLUE or GLM uses."""
        stems = (split, "dev") if split == VALIDATION else (split,)
        paths = [folder / f"{stem}{suffix}" for suffix in _SUFFIXES for stem in stems]
        return next((path for path in paths if path.is_file()), paths[0])

    def _pattern(self, options: PromptOptions) -> Pattern:
        """Return the pattern that the options select.

        Raises:
            UserError: there is no such pattern, or the task does not use an option.
        """
        for name in non_defaults(options):
            if name not in self.USED_OPTIONS:
                raise UserError(f"{flag_of(name)}: the task {self.name} does not use it.")
        patterns = self.description.pattern
        number = self.description.default if options.pattern is None else options.pattern
        if not 0 <= number < len(patterns):
            raise UserError(
                f"--pattern {number}: the task {self.name} has {len(patterns)}, numbered from 0 on."
            )
        return patterns[number]

    def _check_blank(self, context: EncodeContext) -> None:
        """Check that the model knows the blank of the pattern.

        Raises:
            UserError: the model is causal, or does not know the blank.
        """
        masks = masks_of(context.pattern.text)
        if masks and context.prompt_format.causal:
            raise UserError(
                "this task fills blanks, and the model reads from left to right. Take a model that "
                "was trained with the objective glm, or a task without a blank (prompted)."
            )
        if self.NEEDS_OWN_BLANK and any(context.blank(mask) != mask for mask in masks):
            raise UserError(
                f"the task {self.name}: the pattern {context.pattern.text!r} has a blank that the "
                f"model does not know: it was trained without task masks, or "
                f"{context.tokenizer.spec} has no such token. Write [MASK] there."
            )

    def check_fields(self, items: Sequence[Item], context: EncodeContext) -> None:  # noqa: ARG002
        """Subclasses may check here that the first item, if any, has the fields of the pattern."""
        return


def with_rows(example: Example, rows: Sequence[Row], words: Sequence[int] = ()) -> Example:
    """Return an example with its rows, and the ids of its words."""
    return replace(example, rows=tuple(rows), words=tuple(words))
