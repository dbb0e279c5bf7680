"""The probability of a label by a fastText classifier, such as those that tell good pages.

    --classifier FILE:LABEL>=0.4        zh=FILE:LABEL>=0.4        FILE:LABEL

A text becomes one line, as for DCLM's classifiers (https://github.com/mlfoundations/dclm,
baselines/mappers/enrichers/quality_prediction_enrichers_calc_fasttext.py): its lines, without the
white space around all of them, joined by spaces. The figure is the probability that fastText's own
C++ code gives the label, whatever the model's loss; it adds 0.00001 to each before it takes the
logarithm, which is left in, and what is above 1 then is cut.
"""

import re
from collections.abc import Iterable, Sequence
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
    """Return the line that a classifier reads of a text; a model should be trained on the same."""
    return " ".join(text.strip().splitlines())


def metric_of(label: str) -> str:
    """Return the name of a label's metric, without the classifier's."""
    return _ODD.sub("_", label.removeprefix(_PREFIX))


class QualityClassifier:
    """A loaded classifier."""

    def __init__(self, path: Path) -> None:
        """Load it.

        Raises:
            UserError: the file is missing, damaged or another one; no fastText is installed.
        """
        self._model, file = load_library(path, wanted=_WANTED)
        self.fingerprint = file_hash(path)
        """SHA-256 of the file."""
        self.labels = file.labels
        """As the model has them, most of them with the prefix `__label__`."""
        self._answers = lru_cache(maxsize=1)(self._answered)  # several labels of the same texts

    def probabilities(self, label: str, texts: Sequence[str]) -> list[float]:
        """Return the probability of a label; NaN where the model knows no word of a text.

        A model with hierarchical softmax leaves out labels below 0.00001: they have 0.
        """
        answers = self._answers(tuple(texts))
        return [answer.get(label, 0.0) if answer else np.nan for answer in answers]

    def _answered(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Return the probabilities of each text by label."""
        # fastText reads lines, whose final line break counts as a word.
        lines = map(line_of, texts)
        answers = [
            self._model.predict(f"{line}\n", _ALL_LABELS, 0.0, "strict") if line else ()
            for line in lines
        ]
        return [{label: min(score, 1.0) for score, label in answer} for answer in answers]


class ClassifierScorer(Scorer):
    """The classifiers of a run, by language; columns are classifier.LABEL.

    A source is a file and a label, as its model has it.
    """

    family, valid = FAMILY, (0.0, 1.0)
    conflict = (
        f": another model of the same language gives {FAMILY}.{{metric}} already ({{file}}). A "
        "label is taken from one model only; train one of them with another name for it."
    )

    def __init__(self, specs: Iterable[str], overrides: Sequence[str] = ()) -> None:
        """Load the models; `specs` as in the module's docstring, `overrides` as --threshold.

        Raises:
            UserError: a spec, a label or a file is none, or a bound is given twice.
        """
        self._loaded: dict[Path, QualityClassifier] = {}
        super().__init__(specs, overrides)

    def _load(self, spec: ScorerSpec) -> ModelMetric:
        name, colon, label = spec.source.rpartition(":")
        if not (name and colon and label):
            raise UserError(f'"{spec.text}" names no label. {_WRITE}.')
        path = Path(name)
        model = self._loaded.get(path) or self._loaded.setdefault(path, QualityClassifier(path))
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
