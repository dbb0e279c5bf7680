"""A task: what its files ask of a model, how answers are counted, how they are handed in.

    questions = task.questions(path, split=TRAIN, tokenizer=tokenizer, asking=Asking())
    given = [one.prediction for one in tuning.answers.answer(model, questions)]
    task.metrics(questions, given)    {"accuracy": 98.0}
    task.lines(questions, given)      [{"idx": 0, "label": 1}, …]

`catalogue.find_task` finds one by its name, or makes one of a file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.flags import flag_of, given, option, positive
from trainer.tasks.question import Question
from trainer.tokenizer import TextTokenizer

TRAIN, VALIDATION, TEST = SPLITS = ("train", "val", "test")

ASKED = "how items are asked"
"""The title of `Asking` in `--help`."""
_SUFFIXES = (".jsonl", ".json", ".source")

CLOZE, SPELLED = FORMS = ("cloze", "spelled")

Prediction = int | str
"""The number of a choice or word, 1 or 0 for an answer that is the most probable or not, or the
text that was written."""


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How a task's items become questions; flags of every command that asks them."""

    pattern: int | None = option(
        None,
        "Which of the task's patterns, from 0 on. Default: the task's.",
        type=int,
        metavar="N",
        group=ASKED,
    )
    length: int | None = option(
        None, "Tokens of a row at most. Default: the task's.", type=positive, metavar="N"
    )
    form: str | None = option(
        None,
        "cloze: a word or an answer fills a blank. spelled: words too are scored as answers, "
        "which may be of several tokens. Default: the task's.",
        choices=FORMS,
    )
    candidates: bool = option(
        False, "WSC: let other names compete with the one asked about.", action="store_true"
    )
    source_length: int | None = option(
        None,
        "Sequence to sequence: tokens of a source at most. Default: the task's.",
        type=positive,
        metavar="N",
    )
    target_length: int | None = option(
        None,
        "Sequence to sequence: tokens of a target at most. Default: the task's.",
        type=positive,
        metavar="N",
    )
    cut_targets: bool = option(
        False,
        "Sequence to sequence: cut targets that are longer, rather than refuse them.",
        action="store_true",
    )
    hide_padding: bool = option(
        False,
        "Sequence to sequence: no padding between source and target, which the reference shows "
        "to the model.",
        action="store_true",
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a task's items become questions, nothing left open: `Asking` and what a task takes."""

    pattern: int = 0
    form: str = CLOZE
    """One of FORMS."""
    length: int = 256
    candidates: bool = False
    source_length: int = 512
    target_length: int = 128
    cut_targets: bool = False
    hide_padding: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskContext:
    """All that items need to become questions."""

    options: Options
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A task; see the module."""

    name: str
    ask: Callable[[Path, TaskContext], list[Question]]
    """Read a file's items."""
    measure: Callable[[Sequence[Question], Sequence[Prediction]], dict[str, float]]
    hand_in: Callable[[Sequence[Question], Sequence[Prediction]], list[dict[str, Any]]]
    """Return the lines of predictions."""
    defaults: Options = field(default_factory=Options)
    """Where `Asking` leaves it open."""
    num_patterns: int = 1
    takes: tuple[str, ...] = ("form", "length", "pattern")
    """The fields of `Asking` that mean something to the task."""
    is_written: bool = False
    """Answers are written by a decoder, not chosen; predictions are texts."""

    def questions(
        self,
        path: Path,
        *,
        split: str,
        tokenizer: TextTokenizer,
        asking: Asking,
        is_causal: bool = False,
        task_mask: bool = True,
    ) -> list[Question]:
        """Return the questions of a file, in the order of training or evaluation.

        Args:
            path: a file, or a folder that holds one of the split's name.
            split: one of SPLITS. Only for TRAIN are there mirrors, and labels for all.
            tokenizer: the model's.
            asking: the flags.
            is_causal: the model reads from left to right, and has no blanks.
            task_mask: it knows [sMASK] and [gMASK] beside [MASK] (`trained.Trained`).

        Raises:
            UserError: an item lacks a field, has an unknown label or does not fit; says which.
        """
        context = TaskContext(
            options=self._options(asking),
            tokenizer=tokenizer,
            split=split,
            is_causal=is_causal,
            task_mask=task_mask,
        )
        file = self.file(path, split) if path.is_dir() else path
        questions = self.ask(file, context)
        if not questions:
            raise UserError(f"{file} holds nothing to ask for the task {self.name}.")
        return questions

    def metrics(
        self, questions: Sequence[Question], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """Return figures by name; the first picks the best epoch, the more the better.

        Questions without a known answer may not be among them.
        """
        return self.measure(questions, predictions)

    def lines(
        self, questions: Sequence[Question], predictions: Sequence[Prediction]
    ) -> list[dict[str, Any]]:
        """Return predictions as they are handed in, one JSON object a line."""
        return self.hand_in(questions, predictions)

    def file(self, folder: Path, split: str) -> Path:
        """Return a split's file in a folder: val.jsonl, or as CLUE and GLM name it."""
        stems = (split, "dev") if split == VALIDATION else (split,)
        names = [f"{stem}{suffix}" for suffix in _SUFFIXES for stem in stems]
        return next(
            (folder / name for name in names if (folder / name).is_file()), folder / names[0]
        )

    def _options(self, asking: Asking) -> Options:
        """Return the options of a call; UserError where the task has no use for one."""
        names = given(asking)
        for name in names:
            if name not in self.takes:
                raise UserError(f"{flag_of(name)}: the task {self.name} has no use for it.")
        options = replace(self.defaults, **{name: getattr(asking, name) for name in names})
        if not 0 <= options.pattern < self.num_patterns:
            raise UserError(
                f"--pattern {options.pattern}: the task {self.name} has {self.num_patterns}, "
                "numbered from 0 on."
            )
        return options
