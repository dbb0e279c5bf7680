"""Questions with choices, each a text that may follow: the most probable one is the answer.

Texts, and what counts, are those of EleutherAI's lm-evaluation-harness (0.4), so that figures
compare: `acc` by the sum of the log-probabilities of a choice's tokens, `acc_norm` by that sum
divided by the number of its characters; of equal ones the first.
"""

import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainer.tasks.exam import Answers
from trainer.tasks.items import Item, read_some_items
from trainer.tasks.phrasing import Continuation, Pair, Phrasing
from trainer.tasks.rows import Row


@dataclass(frozen=True, kw_only=True)
class Choices:
    """A question as texts."""

    context: str
    choices: tuple[str, ...]
    """Their characters are counted as they stand here; they follow the context after a space."""
    label: int
    """The number of the right one."""
    place: str
    """File and line."""


_FEWEST = 2
"""Choices of a question."""

Reader = Callable[[Item], Choices]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChoicesExam:
    """All questions of a file."""

    phrasing: Phrasing
    asked: tuple[Continuation, ...]
    """A row per choice."""
    ends: tuple[int, ...]
    """Where the rows of each question end."""
    characters: tuple[int, ...]
    """Of each choice."""
    labels: tuple[int, ...]
    num_equal: int = 0
    """Questions of which two choices are the same text."""

    @classmethod
    def of(cls, path: Path, read: Reader, phrasing: Phrasing) -> "ChoicesExam":
        """Return the exam in a file of JSON lines.

        Raises:
            UserError: an item lacks a field, has an unknown label, a choice does not fit, or is
                there twice in an item of one's own.
        """
        questions = [read(item) for item in read_some_items(path)]
        pairs = [pair for question in questions for pair in _pairs(question, phrasing)]
        return cls(
            phrasing=phrasing,
            asked=tuple(phrasing.continuations(pairs)),
            ends=tuple(np.cumsum([len(question.choices) for question in questions]).tolist()),
            characters=tuple(len(text) for question in questions for text in question.choices),
            labels=tuple(question.label for question in questions),
            num_equal=sum(_equal(question.choices) is not None for question in questions),
        )

    @property
    def pad(self) -> int:
        """The id that fills rows up."""
        return self.phrasing.pad

    @property
    def sizes(self) -> list[int]:
        """Tokens of each row."""
        return [len(asked) for asked in self.asked]

    @property
    def counts(self) -> dict[str, int]:
        """Questions, those of which a context was cut, and those with equal choices."""
        cut = [asked.is_cut for asked in self.asked]
        any_cut = sum(any(cut[first:end]) for first, end in self._spans())
        return {"items": len(self.labels), "cut": any_cut, "with equal choices": self.num_equal}

    def row(self, number: int) -> Row:
        """Return the row of a choice."""
        return self.phrasing.row(self.asked[number])

    def figures(self, answers: Answers) -> dict[str, float]:
        """Return the shares of right answers, plain and by length."""
        plain = answers.log_probability
        return {
            "acc": self._accuracy(plain),
            "acc_norm": self._accuracy(plain / np.array(self.characters, np.float64)),
        }

    def _accuracy(self, scores: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
        """Return the share of questions whose right choice scores best.

        A score that is not finite is never right: a model that has diverged knows nothing.
        """
        right = [
            bool(np.isfinite(scores[first:end]).all()) and int(scores[first:end].argmax()) == label
            for (first, end), label in zip(self._spans(), self.labels, strict=True)
        ]
        return sum(right) / len(right)

    def _spans(self) -> Iterator[tuple[int, int]]:
        return zip((0, *self.ends[:-1]), self.ends, strict=True)


def _pairs(question: Choices, phrasing: Phrasing) -> Iterator[Pair]:
    for number, choice in enumerate(question.choices):
        # The harness keeps a space that a choice has of its own; a glm's answers have one.
        answer = choice if phrasing.is_causal else choice.lstrip()
        place = f"{question.place}, choice {number}"
        yield Pair(context=question.context, answer=f" {answer}", place=place)


def _hellaswag(item: Item) -> Choices:
    scene = f"{item.words('ctx_a')} {item.text('ctx_b').capitalize()}"
    endings = tuple(map(_without_brackets, _texts(item, "endings")))
    if not all(endings):
        raise item.wrong("an ending is nothing but brackets. Expected texts.")
    return Choices(
        context=_without_brackets(f"{item.words('activity_label')}: {scene}"),
        choices=endings,
        label=_label(item, endings),
        place=item.where,
    )


def _without_brackets(text: str) -> str:
    """Return a text of HellaSwag without what WikiHow's markup left in it."""
    text = text.strip().replace(" [title]", ". ")
    return re.sub(r"\[.*?\]", "", text).replace("  ", " ")


def _arc(item: Item) -> Choices:
    """Return an item of ARC as the Hugging Face hub has it, or as AI2 published it."""
    if isinstance(item.fields.get("question"), dict):
        stem, choices = item.words("question", "stem"), item.parts("question", "choices")
        texts = [choice.words("text") for choice in choices]
        labels = [choice.words("label") for choice in choices]
    else:
        stem = item.words("question")
        texts, labels = _texts(item, "choices", "text"), _texts(item, "choices", "label")
    if len(texts) != len(labels):
        raise item.wrong(f"{len(texts)} choices have {len(labels)} labels. Expected one for each.")
    label = item.label(labels, is_needed=True, key="answerKey")
    assert label is not None  # it is needed
    return Choices(
        context=f"Question: {stem}\nAnswer:", choices=tuple(texts), label=label, place=item.where
    )


_JOINERS = {"cause": "because", "effect": "therefore"}


def _copa(item: Item) -> Choices:
    asked = item.label([*_JOINERS], is_needed=True, key="question")
    joiner = list(_JOINERS.values())[asked or 0]
    given = (item.words("choice1"), item.words("choice2"))
    # The harness has a space here beside the one that every choice gets.
    choices = tuple(f" {choice[0].lower()}{choice[1:]}" for choice in given)
    _check_differ(item, choices)
    return Choices(
        # As the harness: the last character goes, meant to be the full stop.
        context=f"{item.words('premise').strip()[:-1]} {joiner}",
        choices=choices,
        label=_label(item, choices),
        place=item.where,
    )


def _own(item: Item) -> Choices:
    choices = _texts(item, "choices")
    _check_differ(item, choices)
    return Choices(
        context=item.words("query"),
        choices=tuple(choices),
        label=_label(item, choices),
        place=item.where,
    )


def _texts(item: Item, *keys: str) -> list[str]:
    """Return a field's list of texts, at least two, none of them blank."""
    values = item.value(*keys)
    are_texts = isinstance(values, list) and all(
        isinstance(value, str) and value.strip() for value in values
    )
    if not are_texts or len(values) < _FEWEST:
        raise item.wrong(
            f'the field "{".".join(keys)}" is {reprlib.repr(values)}. Expected a list of at least '
            f"{_FEWEST} texts, none of them blank."
        )
    texts: list[str] = values
    return texts


def _equal(choices: Sequence[str]) -> tuple[int, int] | None:
    """Return the numbers of two choices that are the same text; None where all differ."""
    numbers: dict[str, int] = {}
    for number, choice in enumerate(choices):
        before = numbers.setdefault(choice.strip(), number)
        if before != number:
            return before, number
    return None


def _check_differ(item: Item, choices: Sequence[str]) -> None:
    """Refuse an item of which a choice would be right and wrong at once.

    Published HellaSwag and ARC are asked as they are instead, so that figures compare, and how many
    such items they have is told (`ChoicesExam.counts`).
    """
    if (equal := _equal(choices)) is not None:
        raise item.wrong(
            f"the choices {equal[0]} and {equal[1]} are the same, "
            f"{reprlib.repr(choices[equal[0]])}: nothing tells the right one from the wrong one. "
            "Correct the item, or leave it out."
        )


def _label(item: Item, choices: Sequence[str]) -> int:
    """Return the number of the right choice, which the field "label" gives."""
    label = item.label(range(len(choices)), is_needed=True)
    assert label is not None  # it is needed
    return label


READERS: Mapping[str, Reader] = {
    "hellaswag": _hellaswag,
    "arc": _arc,
    "arc_easy": _arc,
    "arc_challenge": _arc,
    "copa": _copa,
    "choices": _own,
}
"""By the name of the task."""
