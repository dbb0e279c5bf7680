"""Figures of predictions, and the lines in which they are handed in."""

from collections.abc import Callable, Sequence
from typing import Any

from trainer.tasks.question import Question
from trainer.tasks.task import Prediction

Lines = Callable[[Sequence[Question], Sequence[Prediction]], list[dict[str, Any]]]


def labels_of(questions: Sequence[Question]) -> list[int]:
    """Return the right answers.

    Raises:
        ValueError: one is not known.
    """
    labels = [question.label for question in questions]
    if None in labels:
        raise ValueError(f"the answer to {questions[labels.index(None)].guid} is not known")
    return [label for label in labels if label is not None]


def per_cent(hits: Sequence[bool]) -> float:
    """Return how many are true, in per cent."""
    return 100 * sum(hits) / len(hits)


def accuracy(questions: Sequence[Question], predictions: Sequence[Prediction]) -> dict[str, float]:
    """Return the share of right answers, in per cent."""
    labels = labels_of(questions)
    pairs = zip(labels, predictions, strict=True)
    return {"accuracy": per_cent([label == given for label, given in pairs])}


def accuracy_and_macro_f1(
    questions: Sequence[Question], predictions: Sequence[Prediction]
) -> dict[str, float]:
    """Return the accuracy and the mean F1 (0 to 1) of the labels that occur."""
    labels = labels_of(questions)
    occurring = {*labels, *predictions}
    figures = [f1(labels, predictions, of=label) for label in occurring]
    return {**accuracy(questions, predictions), "f1-macro": sum(figures) / len(figures)}


def f1(labels: Sequence[object], predictions: Sequence[object], *, of: object) -> float:
    """Return the F1 of a label, from 0 to 1; 0 where it does not occur."""
    both = sum(a == b == of for a, b in zip(labels, predictions, strict=True))
    either = sum(a == of for a in labels) + sum(b == of for b in predictions)
    return 2 * both / either if either else 0.0


def labelled(labels: Sequence[object] | None) -> Lines:
    """Return what writes {"idx": …, "label": …}, a prediction by its label or its number."""

    def lines(
        questions: Sequence[Question], predictions: Sequence[Prediction]
    ) -> list[dict[str, Any]]:
        return [
            {"idx": question.idx, "label": labels[int(given)] if labels else int(given)}
            for question, given in zip(questions, predictions, strict=True)
        ]

    return lines
