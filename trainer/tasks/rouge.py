"""ROUGE: how many words, pairs of words and longest common sequences two texts share."""

import re
from collections.abc import Sequence

from shards.errors import UserError

_HAN = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")
_KEYS = {"rouge-1": "rouge1_fmeasure", "rouge-2": "rouge2_fmeasure", "rouge-l": "rougeL_fmeasure"}


def rouge(references: Sequence[str], predictions: Sequence[str]) -> dict[str, float]:
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
    return {name: 100 * float(figures[key]) for name, key in _KEYS.items()}
