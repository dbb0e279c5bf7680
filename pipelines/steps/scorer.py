"""Models that measure texts after the profiles: metrics and bounds, as a profile has them.

Bounds are written with the file of the model, and named as those of a profile: `min_hq` drops a
text whose `hq` is smaller.

FILE:hq>=0.4           for every language
zh=FILE:hq>=0.4        for Chinese, instead of the one for every language
FILE:hq                measured; nothing is dropped
"""

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from pipelines.corpus.languages import LANGUAGES, parse_languages
from pipelines.quality.batch import Column, TextBatch
from pipelines.quality.profile import NAN, Bounds
from pipelines.quality.selection import (
    EVERY_LANGUAGE,
    BoundProfile,
    Selection,
    bound_metrics,
    bounds_as_json,
    parse_bound,
    with_overrides,
)
from shards.errors import UserError
from shards.storage.files import canonical_json

_SIDES = {">=": "min", "<=": "max"}
_SPEC = re.compile(
    r"(?:(?P<language>[A-Za-z_-]+)=)?(?P<source>.+?)(?:(?P<sign>>=|<=)(?P<bound>[^<>=]+))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerSpec:
    """The content of one flag."""

    text: str
    """As written."""
    language: str
    """EVERY_LANGUAGE, or a language."""
    source: str
    """The files."""
    side: str
    """"min" or "max"."""
    bound: str
    """As written; "" if there is none."""


def parse_spec(text: str) -> ScorerSpec:
    """Parse [LANG=]SOURCE[>=BOUND].

    Raises:
        UserError: the language is unknown, or the sign is.
    """
    matched = _SPEC.fullmatch(text)
    if matched is None or set("<>") & set(matched["source"]):
        raise UserError(f'"{text}" sets no bound: write >=NUMBER or <=NUMBER after the model.')
    language = EVERY_LANGUAGE
    if matched["language"]:
        # A label of another model has a script; the chain checks it.
        known = None if "_" in matched["language"] else LANGUAGES
        (language,) = parse_languages([matched["language"]], known)
    return ScorerSpec(
        text=text,
        language=language,
        source=matched["source"],
        side=_SIDES.get(matched["sign"], "min"),
        bound=matched["bound"] or "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMetric:
    """Measures one metric of texts."""

    metric: str
    source: tuple[Any, ...]
    """The file of the model, and what else names it."""
    models: Mapping[str, str]
    """The SHA-256 of each of its files, by the file's role."""
    measure: Callable[[Sequence[str]], Sequence[float]]
    """Returns a number for each text; NaN where the model knows nothing of it."""


class Scorer(ABC):
    """The models of a flag, by language."""

    family: str
    """Its name, which is that of its flag."""
    conflict: str
    """Why a spec cannot give {metric}, which {file} gives already."""
    valid: tuple[float, float]
    """The lowest and the highest value of its metrics."""

    def __init__(self, specs: Iterable[str], overrides: Sequence[str] = ()) -> None:
        """Load the models.

        Args:
            specs: As the flag takes them.
            overrides: Other bounds, as --threshold takes them.

        Raises:
            UserError: a spec or a file is none, or a model or a bound is given twice, or an
                override sets the bound of no metric.
        """
        measures: dict[str, dict[str, ModelMetric]] = {}
        bounds: dict[str, dict[str, float]] = {}
        for spec in map(parse_spec, specs):
            text, loaded = self._bound(spec), self._load(spec)
            bound = parse_bound(spec.text, text, valid=self.valid) if text else NAN
            known = measures.setdefault(spec.language, {}).setdefault(loaded.metric, loaded)
            if known.source != loaded.source:
                conflict = self.conflict.format(metric=loaded.metric, file=known.source[0])
                raise UserError(f'"{spec.text}"{conflict}')
            _add_bound(bounds.setdefault(spec.language, {}), loaded.metric, bound, spec)
        written: dict[str, tuple[BoundProfile, ...]] = {
            language: (bound_metrics(self.family, bounds[language], _measure_all([*own.values()])),)
            for language, own in sorted(measures.items())
        }
        self.selection: Selection = with_overrides(written, overrides, None)
        """The metrics of each language, and bounds on them."""
        entries: dict[str, Any] = {}
        for language, (applied,) in sorted(self.selection.items()):
            own = measures[language if language in measures else EVERY_LANGUAGE]
            models = reduce(or_, (dict(one.models) for one in own.values()))
            entries[language] = {"models": models, "bounds": bounds_as_json(applied.bounds)}
        self.fingerprints: Mapping[str, Any] = {self.family: entries}
        """The inputs of metrics and verdicts, JSON-able: hashes of models, bounds."""

    @abstractmethod
    def _load(self, spec: ScorerSpec) -> ModelMetric:
        """Return the scorer of a spec.

        Raises:
            UserError: It is not written as one, or the model cannot be loaded.
        """

    def _bound(self, spec: ScorerSpec) -> str:
        """Return the bound of a spec as it is written; "" if there is none."""
        return spec.bound

    @abstractmethod
    def _libraries(self) -> str:
        """Return the libraries that decide the metrics, with their versions."""

    @property
    def library_versions(self) -> Mapping[str, str]:
        """The libraries that decide the metrics, with their versions and a mark of the models."""
        return {self.family: versions_with_hash(self._libraries(), self.fingerprints)}


def _add_bound(bounds: dict[str, float], metric: str, bound: float, spec: ScorerSpec) -> None:
    """Add a bound to those of a language; both sides of a metric have one, which may be off."""
    for side in _SIDES.values():
        bounds.setdefault(f"{side}_{metric}", NAN)
    name = f"{spec.side}_{metric}"
    if not math.isnan(bound):
        if not math.isnan(bounds[name]):
            raise UserError(f'"{spec.text}" sets {name} once more: give each bound once.')
        bounds[name] = bound


def _measure_all(
    measures: Sequence[ModelMetric],
) -> Callable[[TextBatch, Bounds], tuple[TextBatch, Sequence[Column]]]:
    def measure(batch: TextBatch, _: Bounds) -> tuple[TextBatch, Sequence[Column]]:
        columns = [one.measure(batch.strings) for one in measures]
        return batch, [np.asarray(column, np.float64) for column in columns]

    return measure


def versions_with_hash(libraries: str, fingerprints: Mapping[str, Any]) -> str:
    """Return the facts that a worker must share with the driver, as a scorer's engine.

    Each worker has the files of models and cutoffs: with others it differs from the driver as with
    another version of a library.
    """
    digest = hashlib.sha256(canonical_json(fingerprints)).hexdigest()
    return f"{libraries} with {digest[:12]}"
