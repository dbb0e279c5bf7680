"""Figures of predictions, and the lines in which they are handed in."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from shards.errors import UserError
from trainer.tasks.question import Question
from trainer.tasks.task import Prediction

Figures = dict[str, float]
Lines = list[dict[str, Any]]
Measure = Callable[[Sequence[Question], Sequence[Prediction]], Figures]
HandIn = Callable[[Sequence[Question], Sequence[Prediction]], Lines]

_HAN = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")
_ROUGE = {"rouge-1": "rouge1_fmeasure", "rouge-2": "rouge2_fmeasure", "rouge-l": "rougeL_fmeasure"}


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


def f1(labels: Sequence[object], predictions: Sequence[object], *, of: object) -> float:
    """Return the F1 of a label, from 0 to 1; 0 where it does not occur."""
    both = sum(a == b == of for a, b in zip(labels, predictions, strict=True))
    either = sum(a == of for a in labels) + sum(b == of for b in predictions)
    return 2 * both / either if either else 0.0


def accuracy(questions: Sequence[Question], predictions: Sequence[Prediction]) -> float:
    """Return the share of right answers, in per cent."""
    pairs = zip(labels_of(questions), predictions, strict=True)
    return per_cent([label == given for label, given in pairs])


def macro_f1(questions: Sequence[Question], predictions: Sequence[Prediction]) -> float:
    """Return the mean F1 (0 to 1) of the labels that occur."""
    labels = labels_of(questions)
    figures = [f1(labels, predictions, of=label) for label in {*labels, *predictions}]
    return sum(figures) / len(figures)


METRICS = {"accuracy": accuracy, "f1-macro": macro_f1}


def measured_by(names: Sequence[str]) -> Measure:
    """Return what counts the figures of METRICS of these names, in their order."""
    return lambda questions, predictions: {
        name: METRICS[name](questions, predictions) for name in names
    }


def labelled(labels: Sequence[object], *, key: str = "idx") -> HandIn:
    """Return what writes {"idx": …, "label": …}, a prediction by its label.

    Args:
        labels: none: predictions stand as numbers.
        key: what "idx" is called.
    """
    return lambda questions, predictions: [
        {key: question.idx, "label": labels[int(given)] if labels else int(given)}
        for question, given in zip(questions, predictions, strict=True)
    ]


def written(questions: Sequence[Question], predictions: Sequence[Prediction]) -> Lines:
    """Return {"idx": …, "prediction": …, "reference": …} of texts."""
    return [
        {"idx": question.idx, "prediction": text, **(question.facts or {})}
        for question, text in zip(questions, predictions, strict=True)
    ]


def rouge_of(questions: Sequence[Question], predictions: Sequence[Prediction]) -> Figures:
    """Return ROUGE of texts."""
    references = [str((question.facts or {})["reference"]) for question in questions]
    return rouge(references, [str(text) for text in predictions])


def rouge_and_exact(questions: Sequence[Question], predictions: Sequence[Prediction]) -> Figures:
    """Return ROUGE, and how many texts are just what they should be, in per cent."""
    references = [str((question.facts or {})["reference"]).strip() for question in questions]
    texts = [str(text).strip() for text in predictions]
    figures = rouge(references, texts)
    hits = [one == other for one, other in zip(references, texts, strict=True)]
    return {"rouge-l": figures["rouge-l"], "exact": per_cent(hits), **figures}


def rouge(references: Sequence[str], predictions: Sequence[str]) -> Figures:
    """Return ROUGE-1, -2 and -L of predictions, F-measures in per cent, the mean over all.

    torchmetrics counts; words are letters and digits in lower case, not stemmed, and each Chinese
    character is a word.

    Raises:
        UserError: torchmetrics is not installed.
    """
    try:
        from torchmetrics.functional.text import rouge_score  # noqa: PLC0415  (takes seconds)
    except ImportError as error:
        raise UserError(
            "ROUGE needs torchmetrics, which is not installed: pip install torchmetrics, or take "
            "the extra train as a whole."
        ) from error
    figures = rouge_score(
        list(predictions),
        list(references),
        rouge_keys=("rouge1", "rouge2", "rougeL"),
        normalizer=str.lower,
        tokenizer=_WORD.findall,
    )
    return {name: 100 * float(figures[key]) for name, key in _ROUGE.items()}
