"""Models that measure texts after the profiles; like profiles they have metrics and bounds.

A bound is given after the file of the model. Its name is as in a profile: `min_hq` drops a text
whose metric `hq` is smaller.

FILE:hq>=0.4           for every language
zh=FILE:hq>=0.4        for Chinese, instead of the model for every language
FILE:hq                texts are only measured
"""

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
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
    """The parsed value of one flag."""

    text: str
    """The value of the flag."""
    language: str
    """A language, or EVERY_LANGUAGE."""
    source: str
    """The files of the model, and a label if the model has several."""
    side: str
    """"min" or "max"."""
    bound: str
    """The bound as written; "" if there is none."""


def parse_spec(text: str) -> ScorerSpec:
    """Parse [LANG=]SOURCE[>=BOUND].

    Raises:
        UserError: The language or the sign is unknown.
    """
    matched = _SPEC.fullmatch(text)
    if matched is None or set("<>") & set(matched["source"]):
        raise UserError(f'"{text}" sets no bound: write >=NUMBER or <=NUMBER after the model.')
    language = EVERY_LANGUAGE
    if matched["language"]:
        # Labels of other language models contain a script; StepPipeline checks them.
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
    """A metric that a model measures."""

    metric: str
    source: tuple[Any, ...]
    """The files of the model, and the label."""
    models: Mapping[str, str]
    """The SHA-256 of each file of the model, by the file's role."""
    measure: Callable[[Sequence[str]], Sequence[float]]
    """Returns a number for each text; NaN if the model cannot score it."""


class Scorer(ABC):
    """The models of a flag, by language."""

    family: str
    """The name of the flag."""
    conflict: str
    """The end of the message for a spec whose {metric} another model, {file}, already gives."""
    valid: tuple[float, float]
    """The lowest and the highest valid bound."""

    def __init__(self, specs: Iterable[str], overrides: Sequence[str] = ()) -> None:
        """Load the models.

        Args:
            specs: The values of the flag.
            overrides: Bounds that replace those in the specs, as in --threshold.

        Raises:
            UserError: A spec or a file is not valid, a model or a bound is given twice, or an
                override sets a bound of an unknown metric.
        """
        self.models: dict[tuple[Path, ...], Any] = {}
        """The loaded models, by their files."""
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
        """The metrics of each language, and their bounds."""
        entries: dict[str, Any] = {}
        for language, (applied,) in sorted(self.selection.items()):
            metrics = measures[language if language in measures else EVERY_LANGUAGE]
            models = reduce(or_, (dict(each.models) for each in metrics.values()))
            entries[language] = {"models": models, "bounds": bounds_as_json(applied.bounds)}
        self.fingerprints: Mapping[str, Any] = {self.family: entries}
        """The hashes of models, and the bounds, as JSON values."""

    @abstractmethod
    def _load(self, spec: ScorerSpec) -> ModelMetric:
        """Return the metric of a spec, with its model loaded.

        Raises:
            UserError: The spec is not valid, or the model cannot be loaded.
        """

    def _bound(self, spec: ScorerSpec) -> str:
        """Return the bound of a spec as text; "" if there is none."""
        return spec.bound

    @abstractmethod
    def _libraries(self) -> str:
        """Return the libraries that compute the metrics, with their versions."""

    @property
    def library_versions(self) -> Mapping[str, str]:
        """The libraries that compute the metrics, with their versions and a hash of the models."""
        return {self.family: versions_with_hash(self._libraries(), self.fingerprints)}


def _add_bound(bounds: dict[str, float], metric: str, bound: float, spec: ScorerSpec) -> None:
    """Add a bound to those of a language; the metric's bound for the other side is off."""
    for side in _SIDES.values():
        bounds.setdefault(f"{side}_{metric}", NAN)
    name = f"{spec.side}_{metric}"
    if not math.isnan(bound):
        if not math.isnan(bounds[name]):
            raise UserError(f'"{spec.text}" sets {name} again: give each bound once.')
        bounds[name] = bound


def _measure_all(
    measures: Sequence[ModelMetric],
) -> Callable[[TextBatch, Bounds], tuple[TextBatch, Sequence[Column]]]:
    def measure(batch: TextBatch, _: Bounds) -> tuple[TextBatch, Sequence[Column]]:
        columns = [one.measure(batch.strings) for one in measures]
        return batch, [np.asarray(column, np.float64) for column in columns]

    return measure


def versions_with_hash(libraries: str, fingerprints: Mapping[str, Any]) -> str:
    """Return library versions with a hash of the files that each worker loads.

    A worker with different model files or cutoffs is refused, as for different library versions.
    """
    digest = hashlib.sha256(canonical_json(fingerprints)).hexdigest()
    return f"{libraries} with {digest[:12]}"
