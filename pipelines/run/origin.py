"""How a dataset was made: its thresholds and its options, as manifest and report.json tell them.

The manifest holds what decides bytes, files by their fingerprints. Where those files lie is in
report.json, which is about the run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pipelines.corpus.options import NOTHING, Options
from pipelines.filters.langid import parse_languages
from pipelines.quality import Quality
from pipelines.quality.profile import Rule
from pipelines.quality.selection import EVERY, OFF, Selection, chosen_for, parse_selection
from shards.errors import UserError
from shards.manifest import Manifest
from shards.storage.address import is_url
from shards.storage.files import read_json
from shards.storage.remote import AnyPath

_REPORT = "report.json"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What decides whether a text stays, once its language and its metrics are known."""

    languages: frozenset[str] | None
    """The languages that stay; None: all."""
    score: float
    """Least score of the language."""
    selection: Selection

    def wants(self, language: str) -> bool:
        """Return whether texts in a language stay."""
        return self.languages is None or language in self.languages

    def rules(self, language: str) -> tuple[Rule, ...]:
        """Return the rules for texts of a language, in order of application."""
        chosen = chosen_for(self.selection, language)
        return tuple(rule for each in chosen for rule in each.profile.rules(each.bounds))

    def group(self, language: str) -> str:
        """Return the language, or EVERY where nothing is said of it alone."""
        return language if language in self.selection else EVERY


def thresholds_of(manifest: Manifest, overrides: Iterable[str] = ()) -> Thresholds:
    """Return the thresholds that a dataset was made with, other bounds put on top.

    Raises:
        UserError: An override names a profile that was not measured or a bound that needs the
            texts again, or this version does not know the dataset's profiles.
    """
    options = manifest.options
    quality = options.get("quality")
    if quality is None:
        raise UserError("The dataset was made by a version without quality rules: build it again.")
    measured = bounds_as_written(quality["bounds"])
    try:
        had = parse_selection(quality["profiles"], measured)
    except UserError as error:
        raise UserError(
            f"{error} The dataset was made by a version whose profiles were others: build it again."
        ) from error
    try:
        selection = parse_selection(quality["profiles"], [*measured, *overrides])
    except UserError as error:
        raise UserError(
            f"{error} The run measured {_measured(had)}; other profiles need the texts again."
        ) from error
    _check_exact(had, selection)
    languages = languages_of(options["languages"])
    return Thresholds(languages=languages, score=options["language_threshold"], selection=selection)


def languages_of(names: Sequence[str]) -> frozenset[str] | None:
    """Return the languages that a list of names means; None: all of them.

    Raises:
        UserError: A name is none of lid.176.
    """
    return None if "all" in names else parse_languages(names)


def bounds_as_written(bounds: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return what a manifest says of bounds as a person would write it, every bound once."""
    # What is said of a language holds only where it comes behind what is said of all.
    languages = sorted(bounds, key=lambda language: (language != EVERY, language))
    return [
        f"{'' if language == EVERY else f'{language}:'}{each['profile']}.{name}="
        f"{OFF if bound is None else repr(bound)}"
        for language in languages
        for each in bounds[language]
        for name, bound in each["bounds"].items()
    ]


def _measured(selection: Selection) -> str:
    told = [
        f"{language}={'+'.join(each.profile.name for each in chosen)}"
        for language, chosen in sorted(selection.items())
        if chosen
    ]
    return ", ".join(told).replace(f"{EVERY}=", "") or "no quality profile"


def _check_exact(had: Selection, selection: Selection) -> None:
    for language, chosen in selection.items():
        for before, now in zip(chosen_for(had, language), chosen, strict=True):
            for each in now.profile.thresholds:
                if not each.exact and now.bounds[each.name] != before.bounds[each.name]:
                    raise UserError(
                        f"{now.profile.short}.{each.name} decides how a text is read "
                        f"({each.meaning}): what it would keep does not follow from the metrics. "
                        "Run the corpus again with it, on a sample (--sample 1%) to try it."
                    )


def given(options: Options, facts: Iterable[str]) -> dict[str, Any]:
    """Return what a person gave for the options that are paths, for report.json.

    Args:
        options: The options.
        facts: Names of options that the manifest holds by the fingerprints of their files.
    """
    return {
        "folder": str(Path.cwd()),
        **{name: getattr(options, name) for name in sorted({*facts} - {"quality"})},
    }


def options_of(directory: AnyPath, manifest: Manifest, kind: type[Options]) -> dict[str, Any]:
    """Return the fields of the options that a dataset was made with, where it tells them.

    Args:
        directory: The dataset.
        manifest: Its manifest.
        kind: The options of its corpus.
    """
    told = manifest.options
    deciding = {each.name for each in fields(kind) if each.metadata["decides"] != NOTHING}
    # What is no list, though the option is one, is a fingerprint.
    plain = {each.name for each in fields(kind) if not isinstance(each.default, tuple)}
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in told.items()
        if name in deciding and (name in plain or isinstance(value, list))
    }
    quality = told["quality"]
    values["quality"] = tuple(quality["profiles"])
    if (
        Quality(parse_selection(values["quality"], values["threshold"])).describe()
        != (quality["bounds"])
    ):
        # A manifest holds overrides sorted, and sometimes their order matters.
        values["threshold"] = tuple(bounds_as_written(quality["bounds"]))
    return {**values, "tokenizer": "", "lid_model": "", **_paths(directory, deciding)}


def _paths(directory: AnyPath, names: Iterable[str]) -> dict[str, Any]:
    path = directory / _REPORT
    found = read_json(path).get("given", {}) if path.is_file() else {}
    folder = Path(found.get("folder", ""))
    return {
        name: _placed(value, folder)
        if isinstance(value, str)
        else tuple(_placed(each, folder) for each in value)
        for name, value in found.items()
        if name in names
    }


def _placed(spec: str, folder: Path) -> str:
    """Return PATH or KIND:PATH with the path made absolute, if a file is there."""
    kind, colon, path = spec.rpartition(":")
    there = folder / path
    if not path or is_url(spec) or not there.exists():
        return spec
    return f"{kind}{colon}{there}"
