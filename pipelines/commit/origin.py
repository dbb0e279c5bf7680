"""The thresholds and options that a dataset was made with, read from manifest and report.json.

The manifest has the options that determine the bytes, with fingerprints instead of files. The paths
of these files are in report.json, which describes the run.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.corpus.code import USER_CODE
from pipelines.corpus.languages import LANGUAGES, parse_languages
from pipelines.corpus.options import Options
from pipelines.corpus.user_code import check_user_code
from pipelines.quality.profile import Rule
from pipelines.quality.selection import (
    EVERY_LANGUAGE,
    OFF,
    Labels,
    Selection,
    merge_selections,
    parse_selection,
    profiles_for,
    reasons_of,
    recorded_bounds,
    rules_for,
    with_overrides,
)
from shards.errors import UserError
from shards.manifest import Manifest
from shards.storage.files import read_json
from shards.storage.remote import AnyPath

_REPORT = "report.json"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The options that decide by language and metrics whether a text is kept."""

    languages: frozenset[str] | None
    """The languages to keep; None keeps all languages."""
    score: float
    """The minimum language score of a kept text."""
    selection: Selection
    labels: Labels = LANGUAGES
    """The labels of the language model; None if they are not recorded."""

    def keeps_language(self, language: str) -> bool:
        """Return whether texts in a language are kept."""
        return self.languages is None or language in self.languages

    def rules(self, language: str) -> tuple[Rule, ...]:
        """Return the rules for texts of a language, in order of application."""
        return rules_for(self.selection, language)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that the rules of all languages give."""
        return reasons_of(self.selection)

    def group(self, language: str) -> str:
        """Return the language if the selection names it, else EVERY_LANGUAGE."""
        return language if language in self.selection else EVERY_LANGUAGE


def thresholds_of(manifest: Manifest, overrides: Iterable[str] = ()) -> Thresholds:
    """Return the thresholds that a dataset was made with, with some bounds overridden.

    Raises:
        UserError: An override names a profile that was not measured, or a bound that cannot be
            changed without rereading the texts; or this version does not know the dataset's
            profiles.
    """
    options = manifest.options
    quality = options.get("quality")
    if quality is None:
        raise UserError(
            "The manifest has no quality rules, as after a custom pipeline: other bounds can only "
            "be tried on datasets that a command such as python -m pipelines.text made."
        )
    measured = bounds_as_written(quality["bounds"])
    labels = _labels(options)
    check_user_code(quality.get(USER_CODE, {}), made="the dataset")
    try:
        profiles = parse_selection(quality["profiles"], measured, labels)
    except UserError as error:
        raise UserError(
            f"{error} The dataset was made by a version with other profiles: build it again."
        ) from error
    before = merge_selections(profiles, recorded_bounds(options))
    try:
        selection = with_overrides(before, overrides, labels)
    except UserError as error:
        raise UserError(
            f"{error} The run measured {_measured(before)}; other profiles must read the texts "
            "again."
        ) from error
    _check_exact(before, selection)
    return Thresholds(
        languages=languages_of(options["languages"], labels),
        score=options["language_threshold"],
        selection=selection,
        labels=labels,
    )


def languages_of(names: Sequence[str], labels: Labels) -> frozenset[str] | None:
    """Return the languages that a list of names selects; None if it selects all.

    Raises:
        UserError: A name is not one of the labels.
    """
    return None if "all" in names else parse_languages(names, labels)


def _labels(options: Mapping[str, Any]) -> Labels:
    """Return the labels of the dataset's language model; None if that model is custom."""
    measured = recorded_bounds(options)
    named = {*options["languages"], *options["quality"]["bounds"], *measured} - {
        "all",
        EVERY_LANGUAGE,
    }
    return LANGUAGES if named <= LANGUAGES else None


def bounds_as_written(bounds: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the bounds of a manifest in the notation of --threshold, each bound once."""
    # A bound for one language takes effect only after those for all languages.
    languages = sorted(bounds, key=lambda language: (language != EVERY_LANGUAGE, language))
    return [
        f"{'' if language == EVERY_LANGUAGE else f'{language}:'}{profile['profile']}.{name}="
        f"{OFF if bound is None else repr(bound)}"
        for language in languages
        for profile in bounds[language]
        for name, bound in profile["bounds"].items()
    ]


def _measured(selection: Selection) -> str:
    specs = [
        f"{language}={'+'.join(bound.profile.name for bound in profiles)}"
        for language, profiles in sorted(selection.items())
        if profiles
    ]
    return ", ".join(specs).replace(f"{EVERY_LANGUAGE}=", "") or "no quality profile"


def _check_exact(before: Selection, selection: Selection) -> None:
    for language, profiles in selection.items():
        for old, new in zip(profiles_for(before, language), profiles, strict=True):
            for threshold in new.profile.thresholds:
                name = threshold.name
                if not threshold.exact and new.bounds[name] != old.bounds[name]:
                    raise UserError(
                        f"{new.profile.short}.{name} decides how a text is read "
                        f"({threshold.meaning}): its effect does not follow from the metrics. "
                        "Run the corpus again with it, on a sample (--sample 1%) to try it."
                    )


def given_paths(options: Options, fingerprints: Iterable[str]) -> dict[str, Any]:
    """Return the options that are paths, as the user gave them, for report.json.

    Args:
        options: The options of the run.
        fingerprints: Names of options that the manifest holds as fingerprints of their files.
    """
    return {
        "folder": str(Path.cwd()),
        **{name: getattr(options, name) for name in sorted({*fingerprints} - {"quality"})},
    }


def recorded_paths(directory: AnyPath) -> dict[str, Any]:
    """Return the paths that `given_paths` recorded in report.json; empty if there are none."""
    path = directory / _REPORT
    with suppress(UserError):
        report = read_json(path) if path.is_file() else {}
        given = report.get("given", {}) if isinstance(report, dict) else {}
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in (given.items() if isinstance(given, dict) else ())
        }
    return {}
