"""Computes the metrics of predictions."""

import re
from collections.abc import Sequence

from shards.errors import UserError
from trainer.tasks.rows import Answer, Example

Metrics = dict[str, float]

CHOICE_METRICS = ("accuracy", "f1-macro")
"""The metrics of chosen answers."""
TEXT_METRICS = ("rouge-l", "exact", "rouge-1", "rouge-2")
"""The metrics of generated answers."""

_HAN = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")
_ROUGE = {"rouge-1": "rouge1_fmeasure", "rouge-2": "rouge2_fmeasure", "rouge-l": "rougeL_fmeasure"}


def labels_of(questions: Sequence[Example]) -> list[int]:
    """Return the labels of questions.

    Raises:
        ValueError: a label is not known.
    """
    labels = [question.label for question in questions]
    if None in labels:
        raise ValueError(f"the answer to {questions[labels.index(None)].guid} is not known")
    return [label for label in labels if label is not None]


def per_cent(hits: Sequence[bool]) -> float:
    """Return the share of true values in per cent."""
    return 100 * sum(hits) / len(hits)


def f1(labels: Sequence[object], predictions: Sequence[object], *, of: object) -> float:
    """Return the F1 of the label `of`, from 0 to 1; 0 if the label does not occur."""
    both = sum(a == b == of for a, b in zip(labels, predictions, strict=True))
    either = sum(a == of for a in labels) + sum(b == of for b in predictions)
    return 2 * both / either if either else 0.0


def choice_metrics(questions: Sequence[Example], predictions: Sequence[Answer]) -> Metrics:
    """Return CHOICE_METRICS: accuracy in per cent, and the mean F1 (0 to 1) of all labels."""
    labels = labels_of(questions)
    hits = [label == given for label, given in zip(labels, predictions, strict=True)]
    f1s = [f1(labels, predictions, of=label) for label in {*labels, *predictions}]
    return {"accuracy": per_cent(hits), "f1-macro": sum(f1s) / len(f1s)}


def text_metrics(questions: Sequence[Example], predictions: Sequence[Answer]) -> Metrics:
    """Return TEXT_METRICS: ROUGE, and the share of texts that match exactly, in per cent."""
    references = [str((question.facts or {})["reference"]).strip() for question in questions]
    texts = [str(text).strip() for text in predictions]
    hits = [one == other for one, other in zip(references, texts, strict=True)]
    return {"exact": per_cent(hits), **rouge(references, texts)}


def rouge(references: Sequence[str], predictions: Sequence[str]) -> Metrics:
    """Return ROUGE-1, -2 and -L: mean F-measures of all predictions in per cent.

    torchmetrics computes them. Words are runs of letters and digits in lower case, not stemmed, and
    each Chinese character is a word.

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
