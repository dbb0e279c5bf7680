"""What measures texts beside the profiles, a batch at a time: models, and filters of the user's.

Bounds on its figures are named as those of a profile (quality/profile.py):

`min_hq` drops a text whose `hq` is smaller. Bounds are written with the file of the model:

FILE:hq>=0.4           for every language
zh=FILE:hq>=0.4        for Chinese, in place of what is written for every language
FILE:hq                measured; nothing is dropped
"""

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.corpus.languages import LANGUAGES, parse_languages
from pipelines.quality.catalog import SCORERS
from pipelines.quality.profile import NAN, Bounds, Profile, Rule, Threshold
from pipelines.quality.selection import EVERY, BoundProfile, Selection, chosen_for, rules_for
from pipelines.quality.verdict import Metrics, first_broken, language_codes, places_of
from shards.errors import UserError
from shards.storage.files import canonical

VALUE = "value"
"""The metric of a scorer that has but one: reasons leave it out."""

_LEAST, _MOST = "min", "max"
_SIDES = {">=": _LEAST, "<=": _MOST}
_SPEC = re.compile(
    r"(?:(?P<language>[A-Za-z_-]+)=)?(?P<source>.+?)(?:(?P<sign>>=|<=)(?P<bound>[^<>=]+))?",
    re.DOTALL,
)
_Source = TypeVar("_Source", bound=tuple[Path, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What one flag says."""

    text: str
    """As written."""
    language: str
    """EVERY, or a language."""
    source: str
    """The files."""
    side: str
    """"min" or "max"."""
    bound: str
    """As written; "" if there is none."""

    def written(self, source: str, bound: str) -> str:
        """Return the spec as it is written, with other files."""
        language = "" if self.language == EVERY else f"{self.language}="
        sign = next(sign for sign, side in _SIDES.items() if side == self.side)
        return f"{language}{source}{sign if bound else ''}{bound}"

    def limit(self, metric: str, number: float) -> dict[str, float]:
        """Return both bounds of a metric; the one that is not written is off."""
        return {
            f"{_LEAST}_{metric}": NAN,
            f"{_MOST}_{metric}": NAN,
            f"{self.side}_{metric}": number,
        }


def parse_spec(text: str) -> Spec:
    """Return what [LANG=]SOURCE[>=BOUND] says.

    Raises:
        UserError: the language is unknown, or the sign is.
    """
    matched = _SPEC.fullmatch(text)
    if matched is None or set("<>") & set(matched["source"]):
        raise UserError(f'"{text}" sets no bound: write >=NUMBER or <=NUMBER after the model.')
    language = EVERY
    if matched["language"]:
        # A label of another model has a script; the chain checks it.
        known = None if "_" in matched["language"] else LANGUAGES
        (language,) = parse_languages([matched["language"]], known)
    return Spec(
        text=text,
        language=language,
        source=matched["source"],
        side=_SIDES.get(matched["sign"], _LEAST),
        bound=matched["bound"] or "",
    )


def join_bounds(bounds: dict[str, float], new: Mapping[str, float], spec: Spec) -> None:
    """Add the bounds of a spec to those of the same language.

    Raises:
        UserError: one of them is there already.
    """
    for name, bound in new.items():
        if name not in bounds or math.isnan(bounds[name]):
            bounds[name] = bound
        elif not math.isnan(bound):
            raise UserError(f'"{spec.text}" sets {name} once more: give each bound once.')


def bound_profile(family: str, bounds: Bounds) -> BoundProfile:
    """Return the profile whose bounds these are, named min_ or max_ and a metric."""
    thresholds = tuple(
        Threshold(
            name=name,
            default=NAN,
            rule=_rule(*name.split("_", 1)),
            meaning=f"{'least' if name.startswith(_LEAST) else 'largest'} {family} score",
            source="the flag",
        )
        for name in bounds
    )
    profile = Profile(
        family=family,
        about="the figures of a model",
        metrics=tuple(dict.fromkeys(threshold.metric for threshold in thresholds)),
        thresholds=thresholds,
    )
    return BoundProfile(profile=profile, bounds=bounds)


def reasons_of(selection: Selection) -> tuple[str, ...]:
    """Return every reason that the profiles of a selection may give."""
    return tuple(
        dict.fromkeys(
            reason
            for chosen in selection.values()
            for bound in chosen
            for reason in bound.profile.reasons
        )
    )


def _rule(side: str, metric: str) -> str:
    word = "low" if side == _LEAST else "high"
    return word if metric == VALUE else f"{word}-{metric}"


def described(bounds: Bounds) -> dict[str, float | None]:
    """Return bounds JSON-able; None for one that is off."""
    return {name: None if math.isnan(bound) else bound for name, bound in sorted(bounds.items())}


def recorded_selection(options: Mapping[str, Any]) -> Selection:
    """Return the bounds of scorers that a manifest's options, or the facts of a run, hold."""
    selection: dict[str, tuple[BoundProfile, ...]] = {}
    for family in SCORERS:
        own = {
            language: (_recorded(family, entry["bounds"]),)
            for language, entry in sorted((options.get(family) or {}).items())
        }
        selection = join_selections(selection, own)
    for _, entry in sorted((options.get("filter") or {}).items()):
        if "bounds" in entry:
            own = {EVERY: (_recorded(entry["name"], entry["bounds"]),)}
            selection = join_selections(selection, own)
    return selection


def _recorded(family: str, bounds: Mapping[str, float | None]) -> BoundProfile:
    known = {name: NAN if bound is None else float(bound) for name, bound in bounds.items()}
    return bound_profile(family, known)


def join_selections(first: Selection, second: Selection) -> dict[str, tuple[BoundProfile, ...]]:
    """Return the profiles that each language has in either selection, those of the first first."""
    if not second:
        return dict(first)
    return {
        language: (*chosen_for(first, language), *chosen_for(second, language))
        for language in sorted({*first, *second})
    }


def broken_rules(
    rules: Callable[[str], Sequence[Rule]], languages: pa.Array, metrics: Metrics
) -> list[str | None]:
    """Return the reason of the first rule that each text breaks, None if it breaks none.

    Args:
        rules: The rules of a language.
        languages: The language of each text.
        metrics: The figures of each text.
    """
    names, codes = language_codes(languages)
    broken = np.full(len(codes), None, object)
    for code, language in enumerate(names):
        own = () if language is None else rules(language)
        rows = np.flatnonzero(codes == code)
        if own and len(rows):
            found = first_broken(own, {rule.metric: metrics[rule.metric][rows] for rule in own})
            reasons = np.array([*(rule.reason for rule in own), None], object)
            broken[rows] = reasons[found]
    reasons_of: list[str | None] = broken.tolist()
    return reasons_of


def engine(libraries: str, facts: Mapping[str, Any]) -> str:
    """Return what a worker must have in common with the driver, as a scorer's engine.

    The files of models, and of cutoffs, lie on each worker: with others it is told from the driver
    as with another version of a library.
    """
    digest = hashlib.sha256(canonical(facts)).hexdigest()
    return f"{libraries} with {digest[:12]}"


@dataclass(frozen=True, kw_only=True)
class LanguageConfig(Generic[_Source]):
    """What is asked for one language."""

    sources: dict[str, _Source] = field(default_factory=dict)
    """What gives each metric."""
    bounds: dict[str, float] = field(default_factory=dict)


class Scorer(ABC, Generic[_Source]):
    """The models of a run, by language: metrics of texts, and bounds on them."""

    family: str
    """Its name, which is that of its flag."""
    conflict: str
    """Why a spec cannot give {metric}, which {file} gives already."""

    def __init__(self, specs: Iterable[str]) -> None:
        """Load the models.

        Args:
            specs: As the flag takes them.

        Raises:
            UserError: a spec or a file is none, or a model or a bound is given twice.
        """
        self._configs: dict[str, LanguageConfig[_Source]] = {}
        for spec in map(parse_spec, specs):
            metric, source, bound = self._source(spec)
            config = self._configs.setdefault(spec.language, LanguageConfig())
            other = config.sources.setdefault(metric, source)
            if other != source:
                conflict = self.conflict.format(metric=metric, file=other[0])
                raise UserError(f'"{spec.text}"{conflict}')
            join_bounds(config.bounds, spec.limit(metric, bound), spec)
        self._selection: Selection = {
            language: (bound_profile(self.family, config.bounds),)
            for language, config in self._configs.items()
        }
        metrics = {metric for config in self._configs.values() for metric in config.sources}
        self.columns = tuple(f"{self.family}.{metric}" for metric in sorted(metrics))
        """The names of its metric columns, float32."""
        self.reasons = reasons_of(self._selection)
        """Every reason that it may give."""

    @abstractmethod
    def _source(self, spec: Spec) -> tuple[str, _Source, float]:
        """Return metric, source and bound of a spec, NaN for none; load its model.

        Raises:
            UserError: It is not written as one, or the model cannot be loaded.
        """

    @abstractmethod
    def _models(self, sources: Mapping[str, _Source]) -> dict[str, str]:
        """Return the SHA-256 of each file of some sources, by what it is."""

    @abstractmethod
    def _libraries(self) -> str:
        """Return the libraries that decide the figures, with their versions."""

    @abstractmethod
    def _figures(
        self, sources: Mapping[str, _Source], texts: Sequence[str]
    ) -> Mapping[str, Sequence[float]]:
        """Return the figures of texts by metric; NaN where a model has nothing to say."""

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What decides its figures and verdicts, JSON-able: hashes of models, bounds."""
        entries = {
            language: {"models": self._models(config.sources), "bounds": described(config.bounds)}
            for language, config in sorted(self._configs.items())
        }
        return {self.family: entries}

    @property
    def engines(self) -> Mapping[str, str]:
        """The libraries that decide the figures, with their versions and a mark of the models."""
        return {self.family: engine(self._libraries(), self.facts)}

    def rules(self, language: str) -> tuple[Rule, ...]:
        """Return the rules for texts of a language, in order of application."""
        return rules_for(self._selection, language)

    def score(
        self, texts: Sequence[str], languages: Sequence[str]
    ) -> dict[str, npt.NDArray[np.float32]]:
        """Return the figures of texts in these languages, float32[n] by column.

        NaN where the language has no such model, or the model has nothing to say of the text.
        """
        values = {column: np.full(len(texts), np.nan, np.float32) for column in self.columns}
        for language, places in places_of(languages).items():
            config = self._configs.get(language) or self._configs.get(EVERY)
            if config is not None:
                figures = self._figures(config.sources, [texts[place] for place in places])
                for metric, numbers in figures.items():
                    values[f"{self.family}.{metric}"][places] = numbers
        return values
