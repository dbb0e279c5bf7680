"""Bounds on the figures of a scorer (scorer.py), named as those of a profile (profile.py).

`min_hq` drops a text whose `hq` is smaller. Bounds are written with the file of the model:

FILE:hq>=0.4           for every language
zh=FILE:hq>=0.4        for Chinese, in place of what is written for every language
FILE:hq                measured; nothing is dropped
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.filters.langid import LANGUAGES, parse_languages
from pipelines.quality.catalog import SCORERS
from pipelines.quality.profile import NAN, Bounds, Profile, Rule, Threshold
from pipelines.quality.selection import EVERY, BoundProfile, Selection, chosen_for
from pipelines.quality.verdict import Metrics, first_broken, language_codes
from pipelines.quality.words import MeasuredText
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
_CHUNK = 1 << 20


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
        measure=_not_measured,
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


def _not_measured(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    raise TypeError(f"a scorer measures whole batches, not {text} within {bounds}")


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


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a model's file, in hexadecimal.

    Raises:
        UserError: it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected the file of a model.") from error
    return digest.hexdigest()
