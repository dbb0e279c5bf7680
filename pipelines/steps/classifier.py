"""Scores texts by the probability of a label of a fastText classifier, such as a quality model.

    --classifier FILE:LABEL>=0.4        zh=FILE:LABEL>=0.4        FILE:LABEL

A text becomes one line, as for DCLM's classifiers (https://github.com/mlfoundations/dclm,
baselines/mappers/enrichers/quality_prediction_enrichers_calc_fasttext.py): the text is stripped,
and its lines are joined by spaces. The score is the probability that fastText's own C++ code
computes, whatever loss the model has. fastText adds 0.00001 to each probability before it takes the
logarithm; this is kept, and values above 1 become 1.
"""

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from pipelines.steps.fasttext import LABEL_PREFIX, fasttext_version, file_hash, load_library
from pipelines.steps.scorer import ModelMetric, Scorer, ScorerSpec
from shards.commands.spelling import did_you_mean
from shards.errors import UserError

FAMILY = "classifier"

_PREFIX = LABEL_PREFIX.decode()
_WRITE = "Write FILE:LABEL>=SCORE, such as quality.bin:hq>=0.4, or LANG=FILE:LABEL>=SCORE"
_WANTED = "expected a classifier that fastText's supervised training wrote (.bin or .ftz)."
_ALL_LABELS = -1
_ODD = re.compile(r"[^\w-]+")
_MAX_NAMED = 10


def line_of(text: str) -> str:
    """Return a text as the line that a classifier reads, and that models are trained on."""
    return " ".join(text.strip().splitlines())


def metric_of(label: str) -> str:
    """Return the name of a label's metric, without the name of the classifier."""
    return _ODD.sub("_", label.removeprefix(_PREFIX))


class QualityClassifier:
    """A loaded fastText classifier."""

    def __init__(self, path: Path) -> None:
        """Load the classifier.

        Raises:
            UserError: The file is missing, damaged or not a classifier; or fastText is missing.
        """
        self._model, file = load_library(path, wanted=_WANTED)
        self.fingerprint = file_hash(path)
        """SHA-256 of the file."""
        self.labels = file.labels
        """The labels as in the model, usually with the prefix `__label__`."""
        # Cached because several labels of the same texts may be requested.
        self._predictions = lru_cache(maxsize=1)(self._predict)

    def probabilities(self, label: str, texts: Sequence[str]) -> list[float]:
        """Return each text's probability of a label; NaN if the model knows no word of the text.

        A model with hierarchical softmax omits labels below 0.00001: their probability is 0.
        """
        predictions = self._predictions(tuple(texts))
        return [scores.get(label, 0.0) if scores else np.nan for scores in predictions]

    def _predict(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Return the probabilities of all labels, by label, for each text."""
        # fastText reads lines, and the line break at the end counts as a word.
        predictions = [
            self._model.predict(f"{line}\n", _ALL_LABELS, 0.0, "strict") if line else ()
            for line in map(line_of, texts)
        ]
        return [{label: min(score, 1.0) for score, label in each} for each in predictions]


class ClassifierScorer(Scorer):
    """The classifiers of a run, by language; the columns of scores are classifier.LABEL.

    The module's docstring shows specs. A source is a file and a label of its model.
    """

    family, valid = FAMILY, (0.0, 1.0)
    conflict = (
        f": another model of the same language already gives {FAMILY}.{{metric}} ({{file}}). "
        "Only one model may have this label: train one of the models with another label."
    )

    def _load(self, spec: ScorerSpec) -> ModelMetric:
        name, colon, label = spec.source.rpartition(":")
        if not (name and colon and label):
            raise UserError(f'"{spec.text}" does not name a label. {_WRITE}.')
        path = Path(name)
        model = self.models.get((path,)) or QualityClassifier(path)
        self.models[(path,)] = model
        found = _find_label(label, model, path)
        return ModelMetric(
            metric=metric_of(found),
            source=(path, found),
            models={found: model.fingerprint},
            measure=partial(model.probabilities, found),
        )

    def _libraries(self) -> str:
        return fasttext_version()


def _find_label(label: str, model: QualityClassifier, path: Path) -> str:
    for name in (label, f"{_PREFIX}{label}"):
        if name in model.labels:
            return name
    shown = [name.removeprefix(_PREFIX) for name in model.labels[:_MAX_NAMED]]
    more = ", ..." if len(model.labels) > _MAX_NAMED else ""
    meant = did_you_mean(label, (name.removeprefix(_PREFIX) for name in model.labels))
    raise UserError(
        f'{path} has no label "{label}": {f"{meant} It" if meant else "it"} has '
        f"{', '.join(shown)}{more}."
    )
