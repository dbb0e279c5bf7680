"""Answers of a model to questions: scores of their choices, and the best of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from shards.errors import UserError
from trainer.model.model import GLM
from trainer.tasks.heads import Head, class_numbers
from trainer.tasks.question import Question, rows_of
from trainer.tasks.rows import Row, collate, placed
from trainer.tasks.scores import last_logits, score

NO_CHOICE = -10_000.0
"""The score of a choice that a question lacks, where others of the batch have it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """A model's answer to a question."""

    prediction: int
    """The number of the best choice, word or class, the first of equals; of a question with a
    single answer, 1 where all its targets are the most probable ones, else 0."""
    scores: tuple[float, ...]
    """Of each choice (the logarithm of its probability), word or class (logits)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Judge:
    """What gives scores."""

    model: GLM
    pad: int
    """The token that fills rows up."""
    penalty: float = 0.0
    """A choice's score is divided by its number of targets to this power."""
    head: Head | None = None
    """Of questions for a classifier."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.model.word_embeddings.weight.device

    def numbers(self, questions: Sequence[Question]) -> Tensor:
        """Return scores float32[q, c] of one batch of questions, with gradients.

        All are of one kind. c is the most choices that one has; NO_CHOICE fills the others up.
        """
        values = self.of_rows(rows_of(questions), questions[0])
        kind = questions[0]
        if kind.words:
            words = torch.tensor([question.words for question in questions], device=values.device)
            return values.gather(1, words)
        if kind.classes > 1:
            return values
        sizes = [len(question.rows) for question in questions]
        numbers = values.new_full((len(questions), max(sizes)), NO_CHOICE)
        has = torch.tensor([[at < size for at in range(max(sizes))] for size in sizes])
        return numbers.masked_scatter(has.to(values.device), values.reshape(-1))

    def of_rows(self, rows: Sequence[Row], kind: Question) -> Tensor:
        """Return what is asked of each row: logits [r, V], classes [r, c], or scores [r]."""
        batch = placed(collate(rows, pad=self.pad), self.device)
        if kind.words:
            return last_logits(self.model, batch)
        if kind.classes:
            if self.head is None:
                raise ValueError("questions for a classifier need its head")
            return class_numbers(self.model, self.head, batch, pad=self.pad)
        scores = score(self.model, batch)
        return scores.log_probability / scores.num_targets.clamp(min=1) ** self.penalty


@torch.no_grad()
def answer(judge: Judge, questions: Sequence[Question], *, rows_at_once: int = 32) -> list[Answer]:
    """Return a model's answers, in the order of the questions.

    Args:
        judge: its model is put into evaluation mode by the caller.
        questions: of any kinds.
        rows_at_once: in a batch. Longer rows come first, so that it is the first that lacks memory.

    Raises:
        UserError: a score is not a finite number.
    """
    # Rows are made when they are needed: all of them at once may be too many.
    owners = [(question, at) for question in questions for at in range(len(question.rows))]
    sizes = [len(row) for question in questions for row in question.rows]
    order = sorted(range(len(owners)), key=lambda at: (_kind(owners[at][0]), -sizes[at]))
    values: dict[int, list[float]] = {}
    for batch in _batches(order, [owners[at][0] for at in order], size=rows_at_once):
        rows = [(question, question.rows[at]) for question, at in (owners[at] for at in batch)]
        values.update(zip(batch, _values(judge, rows), strict=True))
    given, first = [], 0
    for question in questions:
        after = first + len(question.rows)
        given.append(_answer(question, [values[at] for at in range(first, after)]))
        first = after
    return given


def _batches(order: Sequence[int], owners: Sequence[Question], *, size: int) -> list[list[int]]:
    """Return runs of rows of one kind, at most so many in each."""
    batches: list[list[int]] = []
    for at, (place, owner) in enumerate(zip(order, owners, strict=True)):
        is_same = at > 0 and _kind(owners[at - 1]) == _kind(owner)
        if not is_same or len(batches[-1]) == size:
            batches.append([])
        batches[-1].append(place)
    return batches


def _kind(question: Question) -> tuple[bool, int, bool]:
    """Return what rows of one batch have in common."""
    is_single = not question.words and not question.classes and len(question.rows) == 1
    return bool(question.words), question.classes, is_single


def _values(judge: Judge, rows: Sequence[tuple[Question, Row]]) -> list[list[float]]:
    """Return what is kept of each row: its words' logits, its classes, or its score."""
    kind = rows[0][0]
    if _kind(kind)[-1]:
        return _greedy(judge, [row for _, row in rows])
    numbers = judge.of_rows([row for _, row in rows], kind)
    if kind.words:
        words = torch.tensor([question.words for question, _ in rows], device=numbers.device)
        numbers = numbers.gather(1, words)
    kept: list[list[float]] = numbers.reshape(len(rows), -1).tolist()
    return kept


def _greedy(judge: Judge, rows: Sequence[Row]) -> list[list[float]]:
    """Return the score of each row, and 1 where all its targets are the most probable ones."""
    scores = score(judge.model, placed(collate(rows, pad=judge.pad), judge.device))
    penalized = scores.log_probability / scores.num_targets.clamp(min=1) ** judge.penalty
    return [
        [value, float(is_greedy)]
        for value, is_greedy in zip(penalized.tolist(), scores.is_greedy.tolist(), strict=True)
    ]


def _answer(question: Question, values: Sequence[Sequence[float]]) -> Answer:
    if not all(math.isfinite(number) for row in values for number in row):
        raise UserError(
            f"the model's scores of {question.guid} are not finite numbers: its training diverged, "
            "or they overflow in its dtype. Take an earlier checkpoint, or --dtype fp32."
        )
    if _kind(question)[-1]:
        number, is_greedy = values[0]
        return Answer(prediction=int(is_greedy), scores=(number,))
    scores = tuple(number for row in values for number in row)
    return Answer(prediction=scores.index(max(scores)), scores=scores)
