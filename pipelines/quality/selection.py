"""Parses which profiles judge which language, and with which bounds.

gopher+c4              profiles for every language
zh=fineweb2-zh         for Chinese, instead of the profiles for every language
ja=none                no profile for Japanese
gopher.min_words=30    a bound of a profile, for all languages that use the profile
zh:glm.min_chars=50    a bound for one language; "off" instead of a number disables the rule
classifier.min_hq=0.3  a bound of a model that measures (steps/scorer.py)
en=my.rules:mine       a custom profile; its bounds are written as mine.max_x=5
ja@my.words:split=gopher   for Japanese, whose words a custom function finds
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pipelines.corpus.languages import LANGUAGES, parse_languages, plain_code
from pipelines.corpus.user_code import load_user_code
from pipelines.quality.catalog import NONE, PROFILES, SCORERS, find_profile
from pipelines.quality.custom import SPLITTER
from pipelines.quality.profile import NAN, BatchMeasure, Bounds, Profile, Rule, Threshold
from pipelines.quality.words import CHINESE
from shards.commands.spelling import expected
from shards.errors import UserError

EVERY_LANGUAGE = "*"
"""Stands for all languages that have no separate entry."""

OFF = "off"

ANY_NUMBER = (-math.inf, math.inf)
"""The range of a bound whose metric may have any value."""

MAX_CHINESE_LENGTH = 1.5
"""A minimum mean word length above this drops nearly all Chinese texts."""

_SPEC = "Write PROFILE or LANG=PROFILE, several profiles as PROFILE+PROFILE"
_OVERRIDE = "Write PROFILE.THRESHOLD=NUMBER or LANG:PROFILE.THRESHOLD=NUMBER"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundProfile:
    """A profile with its bounds for a language."""

    profile: Profile
    bounds: Bounds
    splitter: str = ""
    """MODULE:NAME of the custom function that finds the language's words; "" if there is none."""


Labels = Collection[str] | None
"""The labels of a language model; None if they are not known here."""

Selection = Mapping[str, tuple[BoundProfile, ...]]
"""The profiles of each language, in order of application; EVERY_LANGUAGE for the rest."""

VALUE = "value"
"""The metric's name if a model or filter has only one metric; reasons do not contain the name."""


def bound_metrics(
    family: str, bounds: Mapping[str, float | None], measure: BatchMeasure | None = None
) -> BoundProfile:
    """Return the metrics of a model or custom filter, with their bounds, as a profile.

    Args:
        family: The name of the model or filter; columns and reasons begin with it.
        bounds: The bounds by name (min_METRIC or max_METRIC); None or NaN if off.
        measure: The function that measures; None if only verdicts are needed.
    """
    metrics = tuple(dict.fromkeys(name.split("_", 1)[1] for name in bounds))
    profile = Profile(
        family=family,
        metrics=metrics,
        thresholds=tuple(_threshold(name) for name in bounds),
        measure_batch=measure,
    )
    known = {name: NAN if bound is None else float(bound) for name, bound in bounds.items()}
    return BoundProfile(profile=profile, bounds=known)


def _threshold(name: str) -> Threshold:
    side, metric = name.split("_", 1)
    word = "low" if side == "min" else "high"
    return Threshold(name, NAN, word if metric == VALUE else f"{word}-{metric}")


def recorded_bounds(options: Mapping[str, Any]) -> Selection:
    """Return the bounds of models and filters in a manifest's options or a run's fingerprints."""
    selection: Selection = {}
    for family in SCORERS:
        entries = sorted((options.get(family) or {}).items())
        bounds = {name: (bound_metrics(family, entry["bounds"]),) for name, entry in entries}
        selection = merge_selections(selection, bounds)
    for _, entry in sorted((options.get("filter") or {}).items()):
        if "bounds" in entry:
            bounds = {EVERY_LANGUAGE: (bound_metrics(entry["name"], entry["bounds"]),)}
            selection = merge_selections(selection, bounds)
    return selection


def merge_selections(first: Selection, second: Selection) -> Selection:
    """Return, for each language, the profiles of the first selection, then those of the second."""
    if not second:
        return first
    return {
        language: (*profiles_for(first, language), *profiles_for(second, language))
        for language in sorted({*first, *second})
    }


def reasons_of(selection: Selection) -> tuple[str, ...]:
    """Return every reason that the profiles of a selection may give."""
    profiles = (bound.profile for chosen in selection.values() for bound in chosen)
    return tuple(dict.fromkeys(reason for profile in profiles for reason in profile.reasons))


def bounds_as_json(bounds: Bounds) -> dict[str, float | None]:
    """Return bounds as JSON values, sorted by name; None for a bound that is off."""
    numbers = {name: float(bounds[name]) for name in sorted(bounds)}
    return {name: None if math.isnan(number) else number for name, number in numbers.items()}


def parse_selection(
    specs: Iterable[str], overrides: Iterable[str] = (), labels: Labels = LANGUAGES
) -> Selection:
    """Return the profiles and bounds that specs and overrides describe.

    Args:
        specs: The profiles of languages.
        overrides: Bounds that replace the published ones.
        labels: The languages that may be named; None allows any.

    Raises:
        UserError: A name is unknown or is given twice, or a profile does not support the language.
    """
    selection: dict[str, tuple[BoundProfile, ...]] = {}
    for spec in specs:
        language, chosen = _parse_spec(spec, labels)
        if language in selection:
            whose = "every language" if language == EVERY_LANGUAGE else f'"{language}"'
            raise UserError(
                f'The quality profiles of {whose} are given twice, the second time as "{spec}". '
                "Give them once, joined by +."
            )
        selection[language] = chosen
    _check_names(selection)
    return with_overrides(selection, overrides, labels)


def overrides_for(family: str, overrides: Iterable[str]) -> list[str]:
    """Return the overrides of a model's bounds; for the family "", those of all profiles."""
    return [one for one in overrides if _family_of(one) == family]


def _family_of(override: str) -> str:
    name = override.rpartition("=")[0].rpartition(":")[2].rpartition(".")[0].strip()
    return name if name in SCORERS else ""


def with_overrides(
    selection: Selection, overrides: Iterable[str], labels: Labels = LANGUAGES
) -> Selection:
    """Return a selection in which some bounds are replaced.

    Args:
        selection: The selection.
        overrides: The bounds, as on the command line.
        labels: The languages that may be named; None allows any.

    Raises:
        UserError: An override is not valid, or sets a bound that no profile of the selection has.
    """
    for override in overrides:
        selection = _override(selection, override, labels)
    return MappingProxyType(dict(selection))


def _parse_spec(spec: str, labels: Labels) -> tuple[str, tuple[BoundProfile, ...]]:
    before, equals, names = spec.rpartition("=")
    code, at, splitter = before.partition("@")
    language = _language(code, labels) if equals else EVERY_LANGUAGE
    if at:
        load_user_code(splitter, what=SPLITTER)
    parts = [part.strip() for part in names.split("+")]
    if not all(parts):
        raise UserError(f'"{spec}" does not name a quality profile. {_SPEC}.')
    if NONE in parts:
        if len(parts) > 1:
            raise UserError(f'"{spec}": {NONE} cannot be combined with other profiles.')
        return language, ()
    profiles = [find_profile(part) for part in parts]
    _check(spec, language, profiles, split=bool(at))
    return language, tuple(
        BoundProfile(profile=profile, bounds=profile.defaults, splitter=splitter)
        for profile in profiles
    )


def _check_names(selection: Selection) -> None:
    """Check that no two custom profiles have the same name."""
    known: dict[str, Profile] = {}
    for bound in (bound for chosen in selection.values() for bound in chosen):
        name = bound.profile.name
        if known.setdefault(name, bound.profile) != bound.profile:
            raise UserError(
                f'Two quality profiles have the name "{name}", in {known[name].module} and '
                f"{bound.profile.module}: give one of them another family or variant."
            )


def _check(spec: str, language: str, profiles: Sequence[Profile], *, split: bool) -> None:
    for profile in profiles:
        if profiles.count(profile) > 1:
            raise UserError(f'"{spec}" names {profile.short} twice.')
        if language != EVERY_LANGUAGE and not profile.supports(plain_code(language), split=split):
            raise UserError(f'"{spec}": {_why_unsupported(profile, language)}')


def _why_unsupported(profile: Profile, language: str) -> str:
    if profile.languages is None:
        return (
            f'"{language}" is written without spaces between words, and {profile.short} counts '
            f"words. Use a profile that does not (glm), or {NONE}, or name a function that finds "
            f"the words: {language}@MODULE:FUNCTION={profile.short}."
        )
    served = sorted(profile.languages)
    some = ", ".join(served) if len(served) < 5 else "languages with spaces between words"  # noqa: PLR2004  a short list
    return f'{profile.short} supports {some}, not "{language}".'


def _language(code: str, labels: Labels) -> str:
    (language,) = parse_languages([code], labels)
    return language


def _override(
    selection: Selection, override: str, labels: Labels
) -> dict[str, tuple[BoundProfile, ...]]:
    """Return the selection with one bound set."""
    language, name, threshold, bound = _parse_override(override, labels)
    changed = dict(selection)
    if language:
        changed[language] = profiles_for(selection, language)
    used = False
    for code in [language] if language else selection:
        used |= any(_is_named(name, chosen.profile) for chosen in changed[code])
        changed[code] = tuple(
            _with_bound(chosen, threshold, bound, override)
            if _is_named(name, chosen.profile)
            else chosen
            for chosen in changed[code]
        )
    if not used:
        find_profile(name)
        whom = f'"{language}"' if language else "any language"
        raise UserError(f'"{override}": {name} is not among the quality profiles of {whom}.')
    return changed


def profiles_for(selection: Selection, language: str) -> tuple[BoundProfile, ...]:
    """Return a language's own profiles, or those of EVERY_LANGUAGE that support the language."""
    if language in selection:
        return selection[language]
    plain = plain_code(language)
    return tuple(
        bound for bound in selection.get(EVERY_LANGUAGE, ()) if bound.profile.supports(plain)
    )


def rules_for(selection: Selection, language: str) -> tuple[Rule, ...]:
    """Return the rules for texts of a language, in order of application."""
    return tuple(
        rule
        for bound in profiles_for(selection, language)
        for rule in bound.profile.rules(bound.bounds)
    )


def _parse_override(override: str, labels: Labels) -> tuple[str, str, str, float]:
    place, equals, number = override.rpartition("=")
    before, colon, place = place.rpartition(":")
    name, dot, threshold = (part.strip() for part in place.rpartition("."))
    if not (equals and dot and name and threshold):
        raise UserError(f'"{override}" sets no bound. {_OVERRIDE}.')
    return (
        _language(before, labels) if colon else "",
        name,
        threshold,
        parse_bound(override, number.strip()),
    )


def parse_bound(given: str, text: str, *, valid: tuple[float, float] = ANY_NUMBER) -> float:
    """Return a bound as a number; NaN if it is off.

    Args:
        given: The whole argument, for the error.
        text: The bound in the argument.
        valid: The lowest and the highest valid number.

    Raises:
        UserError: The text is not a valid number.
    """
    if text == OFF:
        return NAN
    try:
        number = float(text)
    except ValueError:
        number = NAN
    low, high = valid
    if not (math.isfinite(number) and low <= number <= high):
        of = f" from {low:g} to {high:g}" if math.isfinite(high) else f" of at least {low:g}"
        of = "" if valid == ANY_NUMBER else of
        raise UserError(f'"{given}": "{text}" is not a bound. Give a number{of}, or {OFF}.')
    return number


def _is_named(name: str, profile: Profile) -> bool:
    # The name of a family means the variant that is in use.
    return name in (profile.name, profile.family)


def _with_bound(chosen: BoundProfile, threshold: str, bound: float, override: str) -> BoundProfile:
    if threshold not in chosen.bounds:
        raise UserError(
            f'"{override}": {chosen.profile.short} has no threshold "{threshold}": '
            f"{expected(threshold, chosen.bounds)}."
        )
    if bound < 0 and chosen.profile in PROFILES:
        raise UserError(f'"{override}": give a bound of at least 0, or {OFF}.')
    return replace(chosen, bounds={**chosen.bounds, threshold: bound})


def find_warnings(selection: Selection, languages: Iterable[str]) -> tuple[str, ...]:
    """Return warnings about profiles that are not applied, or that drop nearly everything."""
    warnings = []
    for language in sorted(languages):
        chosen = profiles_for(selection, language)
        if language not in selection:
            warnings += [
                f'Texts in "{language}" are not judged by {bound.profile.short}: '
                + _why_unsupported(bound.profile, language)
                for bound in selection.get(EVERY_LANGUAGE, ())
                if not bound.profile.supports(plain_code(language))
            ]
        warnings += [
            f'{bound.profile.short} drops nearly every text in "{language}": jieba\'s words have 1 '
            f'to 2 characters. Write "{language}:{bound.profile.short}.min_word_length=1", or use '
            "fineweb2-zh."
            for bound in chosen
            if plain_code(language) in CHINESE
            and not bound.splitter
            and bound.bounds.get("min_word_length", 0) > MAX_CHINESE_LENGTH
        ]
    return tuple(warnings)
