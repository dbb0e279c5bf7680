"""The probability of a label by a fastText classifier, such as those that tell good pages.

    --classifier FILE:LABEL>=0.4        zh=FILE:LABEL>=0.4        FILE:LABEL

A text becomes one line, as for DCLM's classifiers (https://github.com/mlfoundations/dclm,
baselines/mappers/enrichers/quality_prediction_enrichers_calc_fasttext.py): its lines, without the
white space around all of them, joined by spaces. The figure is the probability that fastText's own
C++ code gives the label, whatever the model's loss; it adds 0.00001 to each before it takes the
logarithm, which is left in, and what is above 1 then is cut.
"""

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.filters.fasttext_model import LABEL_PREFIX, check_file
from pipelines.filters.langid import reference_engine
from pipelines.quality.profile import Rule
from pipelines.quality.scored import (
    Spec,
    bound_profile,
    described,
    engine,
    file_hash,
    join_bounds,
    parse_spec,
    reasons_of,
)
from pipelines.quality.selection import EVERY, BoundProfile, rules_for
from pipelines.quality.verdict import places_of
from shards.errors import UserError
from shards.spelling import did_you_mean

FAMILY = "classifier"

_PREFIX = LABEL_PREFIX.decode()
_WRITE = "Write FILE:LABEL>=SCORE, such as quality.bin:hq>=0.4, or LANG=FILE:LABEL>=SCORE"
_WANTED = "expected a classifier that fastText's supervised training wrote (.bin or .ftz)."
_ALL_LABELS = -1
_ODD = re.compile(r"[^\w-]+")
_MOST_NAMED = 10


def line_of(text: str) -> str:
    """Return the line that a classifier reads of a text; a model should be trained on the same."""
    return " ".join(text.strip().splitlines())


def metric_of(label: str) -> str:
    """Return the name of a label's metric, without the classifier's."""
    return _ODD.sub("_", label.removeprefix(_PREFIX))


class Model:
    """A loaded classifier."""

    def __init__(self, path: Path) -> None:
        """Load it.

        Raises:
            UserError: the file is missing, damaged or another one; no fastText is installed.
        """
        try:
            fasttext: Any = importlib.import_module("fasttext")
        except ImportError as error:
            raise UserError(
                f"fastText cannot be imported ({error}): pip install fasttext-predict."
            ) from error
        try:
            labels = check_file(path)
            # The bound C++ object, as for the language: the wrapper fails under NumPy 2.
            self._model = fasttext.load_model(str(path)).f
        except OSError as error:
            raise UserError(f"{path}: {error.strerror or error}; {_WANTED}") from error
        except (ValueError, RuntimeError) as error:
            raise UserError(f"{path} is no fastText classifier ({error}); {_WANTED}") from error
        self.fingerprint = file_hash(path)
        """SHA-256 of the file."""
        self.labels = tuple(label.decode(errors="replace") for label in labels)
        """As the model has them, most of them with the prefix `__label__`."""

    def probabilities(self, text: str) -> dict[str, float]:
        """Return the probability of each label; none if the model knows no word of the text.

        A model with hierarchical softmax leaves out labels below 0.00001.
        """
        # fastText reads lines, whose final line break counts as a word.
        line = line_of(text)
        if not line:
            return {}
        answers = self._model.predict(f"{line}\n", _ALL_LABELS, 0.0, "strict")
        return {label: min(score, 1.0) for score, label in answers}


@dataclass(frozen=True, kw_only=True)
class _Own:
    """What is asked for one language."""

    models: dict[str, tuple[Path, str]] = field(default_factory=dict)
    """By metric: the file and the label, as the model has it."""
    bounds: dict[str, float] = field(default_factory=dict)


class Classifier:
    """The classifiers of a run, by language: a scorer."""

    def __init__(self, specs: Iterable[str]) -> None:
        """Load the models.

        Args:
            specs: As in the module's docstring.

        Raises:
            UserError: a spec, a label or a file is none, or a bound is given twice.
        """
        self._models: dict[Path, Model] = {}
        self._own: dict[str, _Own] = {}
        for text in specs:
            self._add(parse_spec(text))
        self._selection: dict[str, tuple[BoundProfile, ...]] = {
            language: (bound_profile(FAMILY, own.bounds),) for language, own in self._own.items()
        }
        metrics = {metric for own in self._own.values() for metric in own.models}
        self.columns = tuple(f"{FAMILY}.{metric}" for metric in sorted(metrics))
        """The names of its metric columns: classifier.LABEL."""
        self.reasons = reasons_of(self._selection)
        """Every reason that it may give."""

    def _add(self, spec: Spec) -> None:
        name, colon, label = spec.source.rpartition(":")
        if not (name and colon and label):
            raise UserError(f'"{spec.text}" names no label. {_WRITE}.')
        path = Path(name)
        if path not in self._models:
            self._models[path] = Model(path)
        found = _find_label(label, self._models[path], path)
        metric = metric_of(found)
        own = self._own.setdefault(spec.language, _Own())
        if own.models.setdefault(metric, (path, found)) != (path, found):
            raise UserError(
                f'"{spec.text}": another model of the same language gives {FAMILY}.{metric} '
                f"already ({own.models[metric][0]}). A label is taken from one model only; train "
                "one of them with another name for it."
            )
        join_bounds(own.bounds, spec.limit(metric, _number(spec)), spec)

    @property
    def facts(self) -> Mapping[str, Any]:
        """By language the models' hashes by label, and the bounds."""
        entries = {
            language: {
                "models": {
                    label: self._models[path].fingerprint for path, label in own.models.values()
                },
                "bounds": described(own.bounds),
            }
            for language, own in sorted(self._own.items())
        }
        return {FAMILY: entries}

    @property
    def engines(self) -> Mapping[str, str]:
        """The library that reads the models, with its version and a mark of the models."""
        return {FAMILY: engine(reference_engine(), self.facts)}

    def rules(self, language: str) -> tuple[Rule, ...]:
        """Return the rules for texts of a language."""
        return rules_for(self._selection, language)

    def score(
        self, texts: Sequence[str], languages: Sequence[str]
    ) -> dict[str, npt.NDArray[np.float32]]:
        """Return the probability of each label for texts in these languages.

        Returns:
            float32[n] by column; NaN if the language has no such classifier, or if the model knows
            no word of a text.
        """
        values = {column: np.full(len(texts), np.nan, np.float32) for column in self.columns}
        for language, places in places_of(languages).items():
            own = self._own.get(language) or self._own.get(EVERY) or _Own()
            for path in dict.fromkeys(path for path, _ in own.models.values()):
                answers = [self._models[path].probabilities(texts[place]) for place in places]
                for metric, (owner, label) in own.models.items():
                    if owner == path:
                        values[f"{FAMILY}.{metric}"][places] = [
                            answer.get(label, 0.0) if answer else np.nan for answer in answers
                        ]
        return values


def absolute(spec: str, folder: Path) -> str:
    """Return a spec with the path of its file absolute, if it was relative to a folder."""
    parsed = parse_spec(spec)
    name, _, label = parsed.source.rpartition(":")
    return parsed.written(f"{folder / name}:{label}", parsed.bound)


def _find_label(label: str, model: Model, path: Path) -> str:
    for name in (label, f"{_PREFIX}{label}"):
        if name in model.labels:
            return name
    shown = [name.removeprefix(_PREFIX) for name in model.labels[:_MOST_NAMED]]
    more = ", ..." if len(model.labels) > _MOST_NAMED else ""
    meant = did_you_mean(label, (name.removeprefix(_PREFIX) for name in model.labels))
    raise UserError(
        f'{path} has no label "{label}": {f"{meant} It" if meant else "it"} has '
        f"{', '.join(shown)}{more}."
    )


def _number(spec: Spec) -> float:
    if not spec.bound:
        return np.nan
    try:
        number = float(spec.bound)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise UserError(f'"{spec.text}": "{spec.bound}" is no probability from 0 to 1. {_WRITE}.')
    return number
