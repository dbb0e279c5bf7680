"""Which profiles judge which language, with which bounds: read from what a person writes.

gopher+c4              every language
zh=fineweb2-zh         Chinese; what is said of a language holds before what is said of all
ja=none                nothing for Japanese
gopher.min_words=30    a bound, wherever a profile of this name is used
zh:glm.min_chars=50    a bound for one language; "off" in place of a number: no such rule
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pipelines.filters.langid import parse_languages
from pipelines.quality.catalog import NONE, find_profile, nearest
from pipelines.quality.profile import Bounds, Profile
from pipelines.quality.words import CHINESE
from shards.errors import UserError

EVERY = "*"
"""Stands for every language of which nothing else is said."""

OFF = "off"

MOST_CHINESE_LENGTH = 1.5
"""Texts in Chinese have longer words than this on average only if they are not prose."""

_SPEC = "Write PROFILE or LANG=PROFILE, several profiles as PROFILE+PROFILE"
_OVERRIDE = "Write PROFILE.THRESHOLD=NUMBER or LANG:PROFILE.THRESHOLD=NUMBER"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundProfile:
    """A profile with the bounds that it has for a language."""

    profile: Profile
    bounds: Bounds


Selection = Mapping[str, tuple[BoundProfile, ...]]
"""The profiles of each language named, in order of application, and of EVERY."""


def parse_selection(specs: Iterable[str], overrides: Iterable[str] = ()) -> Selection:
    """Return what the profiles and bounds that a person wrote mean.

    Raises:
        UserError: a name is unknown, said twice, or of a profile that cannot judge the language.
    """
    selection: dict[str, tuple[BoundProfile, ...]] = {}
    for spec in specs:
        language, chosen = _parse_spec(spec)
        if language in selection:
            whose = "every language" if language == EVERY else f'"{language}"'
            raise UserError(
                f'Quality profiles of {whose} are given twice, the second time as "{spec}". Write '
                "them once, joined by +."
            )
        selection[language] = chosen
    for override in overrides:
        selection = _overridden(selection, override)
    return MappingProxyType(selection)


def _parse_spec(spec: str) -> tuple[str, tuple[BoundProfile, ...]]:
    before, equals, names = spec.rpartition("=")
    language = _language(before) if equals else EVERY
    parts = [part.strip() for part in names.split("+")]
    if not all(parts):
        raise UserError(f'"{spec}" names no quality profile. {_SPEC}.')
    if NONE in parts:
        if len(parts) > 1:
            raise UserError(f'"{spec}": {NONE} stands alone, without other profiles.')
        return language, ()
    profiles = [find_profile(part) for part in parts]
    _check(spec, language, profiles)
    return language, tuple(BoundProfile(profile=each, bounds=each.defaults) for each in profiles)


def _check(spec: str, language: str, profiles: Sequence[Profile]) -> None:
    for profile in profiles:
        if profiles.count(profile) > 1:
            raise UserError(f'"{spec}" names {profile.short} twice.')
        if language != EVERY and not profile.serves(language):
            raise UserError(f'"{spec}": {_unserved(profile, language)}')


def _unserved(profile: Profile, language: str) -> str:
    if profile.languages is None:
        return (
            f'the words of "{language}" are not those between spaces, and {profile.short} counts '
            f"words. Use a profile without words (glm), or {NONE}."
        )
    served = sorted(profile.languages)
    some = ", ".join(served) if len(served) < 5 else "languages with spaces between words"  # noqa: PLR2004  a short list
    return f'{profile.short} is made for {some}, not for "{language}".'


def _language(code: str) -> str:
    (language,) = parse_languages([code])
    return language


def _overridden(
    selection: Mapping[str, tuple[BoundProfile, ...]], override: str
) -> dict[str, tuple[BoundProfile, ...]]:
    """Return the selection with one bound set."""
    language, name, threshold, bound = _parse_override(override)
    changed = dict(selection)
    if language:
        changed[language] = chosen_for(selection, language)
    found = False
    for each in [language] if language else [*selection]:
        found |= any(_called(chosen.profile, name) for chosen in changed[each])
        changed[each] = tuple(
            _bounded(chosen, threshold, bound, override)
            if _called(chosen.profile, name)
            else chosen
            for chosen in changed[each]
        )
    if not found:
        find_profile(name)
        whom = f'"{language}"' if language else "any language"
        raise UserError(f'"{override}": {name} is not among the quality profiles of {whom}.')
    return changed


def chosen_for(selection: Selection, language: str) -> tuple[BoundProfile, ...]:
    """Return the profiles of a language: its own, or those of every language that can judge it."""
    if language in selection:
        return selection[language]
    return tuple(each for each in selection.get(EVERY, ()) if each.profile.serves(language))


def _parse_override(override: str) -> tuple[str, str, str, float]:
    place, equals, number = override.rpartition("=")
    before, colon, place = place.rpartition(":")
    name, dot, threshold = (part.strip() for part in place.rpartition("."))
    if not (equals and dot and name and threshold):
        raise UserError(f'"{override}" sets no bound. {_OVERRIDE}.')
    return _language(before) if colon else "", name, threshold, _number(override, number.strip())


def _number(override: str, text: str) -> float:
    if text == OFF:
        return math.nan
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise UserError(
            f'"{override}": "{text}" is no bound. Give a number of at least 0, or {OFF}.'
        )
    return number


def _called(profile: Profile, name: str) -> bool:
    # The bare name stands for whichever variant is in use.
    return name in (profile.name, profile.family)


def _bounded(chosen: BoundProfile, threshold: str, bound: float, override: str) -> BoundProfile:
    if threshold not in chosen.bounds:
        raise UserError(
            f'"{override}": {chosen.profile.short} has no threshold "{threshold}": '
            f"{nearest(threshold, [*chosen.bounds])}."
        )
    return BoundProfile(profile=chosen.profile, bounds={**chosen.bounds, threshold: bound})


def find_warnings(selection: Selection, languages: Iterable[str]) -> tuple[str, ...]:
    """Return what a person should know: profiles not applied, and one that drops everything."""
    warnings = []
    for language in sorted(languages):
        chosen = chosen_for(selection, language)
        if language not in selection:
            warnings += [
                f'Texts in "{language}" are not judged by {each.profile.short}: '
                + _unserved(each.profile, language)
                for each in selection.get(EVERY, ())
                if not each.profile.serves(language)
            ]
        warnings += [
            f'{each.profile.short} drops nearly every text in "{language}": jieba\'s words have 1 '
            f'to 2 characters. Write "{language}:{each.profile.short}.min_word_length=1", or use '
            "fineweb2-zh."
            for each in chosen
            if language in CHINESE and each.bounds.get("min_word_length", 0) > MOST_CHINESE_LENGTH
        ]
    return tuple(warnings)
