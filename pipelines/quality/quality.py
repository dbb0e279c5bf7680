"""Measures texts by the profiles of their language, and judges them by their metrics.

For every text, all metrics of all profiles of its language are computed, even after the text has
broken a rule, so that different bounds can be tried on the metrics alone.
"""

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import is_not
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.corpus.code import code_hash
from pipelines.corpus.languages import LANGUAGES, plain_code
from pipelines.corpus.user_code import module_of
from pipelines.libraries import library_version
from pipelines.quality.batch import Column, TextBatch
from pipelines.quality.catalog import PROFILES, REASONS
from pipelines.quality.custom import load_splitter
from pipelines.quality.profile import BatchMeasure, Bounds, Profile, Rule
from pipelines.quality.selection import (
    EVERY_LANGUAGE,
    Labels,
    Selection,
    bounds_as_json,
    find_warnings,
    overrides_for,
    parse_selection,
    profiles_for,
    reasons_of,
    rules_for,
)
from pipelines.quality.spans import Places, cumsum_from_zero
from pipelines.quality.verdict import (
    Metrics,
    first_broken,
    language_codes,
    metric_columns,
)
from pipelines.quality.words import (
    CHINESE,
    DATATROVE,
    ENGLISH,
    WordLibraries,
    WordSplitter,
    word_splitters,
)
from shards.errors import UserError

BATCH_CHARACTERS = 1 << 19
"""Characters to measure at once: more exceed the CPU's cache, and fewer need more calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityResult:
    """The verdicts and metrics of n texts."""

    texts: list[str]
    """The texts that the profiles pass on; c4 removes lines from some."""
    changed: npt.NDArray[np.bool_]
    """bool[n]: whether a profile changed the text."""
    metrics: dict[str, npt.NDArray[np.float32]]
    """float32[n] by column; NaN for texts in languages that lack the column's profile."""
    reasons: list[str | None]
    """The reason of the first rule that each text breaks; None if the text is kept."""


class QualityRules:
    """The profiles and bounds of a run, by language."""

    def __init__(self, selection: Selection) -> None:
        """Make the rules of a selection."""
        self.selection = selection
        """The profiles and bounds by language."""
        self._libraries = WordLibraries()
        self._rules: dict[str, tuple[Rule, ...]] = {}
        self._groups: dict[str, _LanguageGroup] = {}
        self._distinct: dict[Any, _LanguageGroup] = {}

    @classmethod
    def parse(
        cls,
        specs: Iterable[str],
        overrides: Iterable[str] = (),
        *,
        labels: Labels = LANGUAGES,
    ) -> "QualityRules":
        """Return the rules that specs and overrides describe; selection.py has the syntax.

        Args:
            specs: The profiles of languages.
            overrides: Bounds that replace the published ones; bounds of models are ignored.
            labels: The languages that may be named; None allows any.

        Raises:
            UserError: A name is unknown or is given twice, or a profile does not support the
                language that it is named for, or needs a library that is not installed.
        """
        quality = cls(parse_selection(specs, overrides_for("", overrides), labels))
        for name in sorted(quality._needed):
            if importlib.util.find_spec(name) is None:
                raise UserError(
                    f"A quality profile splits words with {name}, which is not installed: pip "
                    f"install 'corpusmill[{'datatrove' if name == 'spacy' else 'pipelines'}]'."
                )
        return quality

    @cached_property
    def all_reasons(self) -> tuple[str, ...]:
        """Every reason that any profile may give; custom profiles and models come last."""
        return tuple(dict.fromkeys((*REASONS, *reasons_of(self.selection))))

    @cached_property
    def custom_code(self) -> dict[str, str]:
        """The modules of custom profiles and splitters, each with the hash of its code."""
        splitters = {
            module_of(bound.splitter)
            for chosen in self.selection.values()
            for bound in chosen
            if bound.splitter
        }
        modules = {profile.module for profile in self._custom_profiles} | splitters
        return {module: code_hash(module) for module in sorted(modules)}

    @cached_property
    def _custom_profiles(self) -> tuple[Profile, ...]:
        """The custom profiles, sorted by name."""
        custom = {
            bound.profile.name: bound.profile
            for chosen in self.selection.values()
            for bound in chosen
            if bound.profile.module
        }
        return tuple(custom[name] for name in sorted(custom))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the metric columns, in a fixed order."""
        used = [bound.profile for chosen in self.selection.values() for bound in chosen]
        models = (profile for profile in used if profile not in PROFILES and not profile.module)
        return (
            *(column for one in PROFILES if one in used for column in one.columns),
            *(column for one in self._custom_profiles for column in one.columns),
            *sorted({column for model in models for column in model.columns}),
        )

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The fields of the metric columns, float32, in a fixed order."""
        return tuple(pa.field(column, pa.float32()) for column in self.columns)

    def rules(self, language: str) -> tuple[Rule, ...]:
        """Return the rules for texts of a language, in order of application."""
        if language not in self._rules:
            self._rules[language] = rules_for(self.selection, language)
        return self._rules[language]

    def judge(self, texts: Sequence[str], languages: Sequence[str]) -> QualityResult:
        """Measure and judge texts, given the language model's label for each text."""
        values = np.full((len(self.columns), len(texts)), np.nan, np.float32)
        passed_on = list(texts)
        encoded = pa.array(languages, pa.string()).dictionary_encode()
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        for group, rows in self._rows_by_group(*language_codes(encoded)):
            for part in _parts(rows, lengths):
                columns, strings = self._measure(
                    group, [texts[row] for row in part], [languages[row] for row in part]
                )
                values[group.columns[:, None], part] = columns
                for row, text in zip(part, strings, strict=True):
                    passed_on[row] = text
        metrics = dict(zip(self.columns, values, strict=True))
        return QualityResult(
            texts=passed_on,
            changed=np.array([*map(is_not, texts, passed_on)], np.bool_),
            metrics=metrics,
            reasons=self._reasons(encoded, metrics).to_pylist(),
        )

    def _measure(
        self, group: "_LanguageGroup", texts: Sequence[str], languages: Sequence[str]
    ) -> tuple[npt.NDArray[np.float64], Sequence[str]]:
        """Return the metrics of texts by column, and the texts that the profiles pass on."""
        plain = {language: plain_code(language) for language in {*languages}}
        codes = [plain[language] for language in languages]
        batch = TextBatch(texts, codes, group.splitters, self._libraries)
        columns: list[Column] = []
        for measure, bounds in group.steps:
            batch, measured = measure(batch, bounds)
            columns += list(measured)
        return np.array(columns, np.float64), batch.strings

    def reasons(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        """Return the reason of the first rule that each row breaks, null if it breaks none.

        Args:
            table: The metric columns, float32, and the string column `language`. Rows whose
                language is null have no reason.

        Returns:
            A string array of the table's length.

        Raises:
            UserError: The table lacks a column.
        """
        metrics = metric_columns(table, self.columns)
        return self._reasons(table["language"], metrics)

    def describe(self) -> dict[str, Any]:
        """Return the profiles and bounds of each language as JSON values.

        A bound that is off is None. Languages and bounds are sorted; profiles are in order of
        application.
        """
        return {
            language: [
                {"profile": applied.profile.name, "bounds": bounds_as_json(applied.bounds)}
                for applied in chosen
            ]
            for language, chosen in sorted(self.selection.items())
        }

    @property
    def library_versions(self) -> Mapping[str, str]:
        """The libraries that find words, with their versions, and the hashes of custom code."""
        libraries = sorted(self._needed)
        words = {"words": ", ".join(map(library_version, libraries))} if libraries else {}
        code = {f"code of {name}": f"{name} {code}" for name, code in self.custom_code.items()}
        return words | code

    def warnings(self, languages: Iterable[str]) -> tuple[str, ...]:
        """Return the warnings about texts in these languages."""
        return find_warnings(self.selection, languages)

    @cached_property
    def _needed(self) -> frozenset[str]:
        """The libraries that find words."""
        return frozenset(
            library
            for language, chosen in self.selection.items()
            for bound in chosen
            if not bound.splitter
            for library in _libraries(bound.profile, plain_code(language))
        )

    def _rows_by_group(
        self, names: Sequence[str | None], codes: Places
    ) -> Iterator[tuple["_LanguageGroup", Places]]:
        """Yield each group of languages that has profiles, and the indices of its texts."""
        groups = [self._group_of(name or "") for name in names]
        for group in dict.fromkeys(groups):
            if group.steps:
                same = [code for code, other in enumerate(groups) if other is group]
                yield group, np.flatnonzero(np.isin(codes, same))

    def _group_of(self, language: str) -> "_LanguageGroup":
        """Return the group of languages, measured in the same way, that a language belongs to."""
        if language not in self._groups:
            chosen = profiles_for(self.selection, language)
            plain = plain_code(language)
            splitters = {bound.splitter for bound in chosen if bound.splitter}
            # Models of different languages may have the same name.
            profiles = [(bound.profile, sorted(bound.bounds.items())) for bound in chosen]
            names = [(one.name, id(one.measure_batch), bounds) for one, bounds in profiles]
            key = repr((names, splitters, not splitters and plain in CHINESE))
            if key not in self._distinct:
                splitter = load_splitter(splitters.pop()) if splitters else None
                columns = [column for bound in chosen for column in bound.profile.columns]
                self._distinct[key] = _LanguageGroup(
                    steps=tuple((_measure_of(bound.profile), bound.bounds) for bound in chosen),
                    columns=np.array([self.columns.index(column) for column in columns], np.intp),
                    splitters=word_splitters(plain, self._libraries, splitter),
                )
            self._groups[language] = self._distinct[key]
        return self._groups[language]

    def _reasons(self, languages: pa.Array, metrics: Metrics) -> pa.Array:
        names, codes = language_codes(languages)
        reasons = self.all_reasons
        broken = np.full(len(codes), -1, np.int16)  # indices of reasons
        for code, language in enumerate(names):
            rules = () if language is None else self.rules(language)
            rows = np.flatnonzero(codes == code) if rules else ()
            if len(rows):
                values = {rule.metric: metrics[rule.metric][rows] for rule in rules}
                numbers = np.array([*(reasons.index(rule.reason) for rule in rules), -1])
                broken[rows] = numbers[first_broken(rules, values)]
        indices = pa.array(broken, mask=broken < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(reasons)).cast(pa.string())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LanguageGroup:
    """Languages whose texts are measured together, because they have the same profiles."""

    steps: tuple[tuple[BatchMeasure, Bounds], ...]
    """The functions that measure, in order of application, with their bounds."""
    splitters: Mapping[str, WordSplitter]
    """The functions that find words, by kind of words."""
    columns: npt.NDArray[np.intp]
    """The indices of the measured columns among all metric columns."""


def _measure_of(profile: Profile) -> BatchMeasure:
    assert profile.measure_batch is not None  # every profile that can be named has one
    return profile.measure_batch


def _parts(rows: Places, lengths: Places) -> Iterator[Places]:
    """Yield the indices in parts: texts of at most BATCH_CHARACTERS in all, or one longer text."""
    sums = cumsum_from_zero(lengths[rows])
    first = 0
    while first < len(rows):
        last = int(np.searchsorted(sums, sums[first] + BATCH_CHARACTERS, side="right")) - 1
        last = max(last, first + 1)
        yield rows[first:last]
        first = last


def _libraries(profile: Profile, language: str) -> frozenset[str]:
    """Return the libraries that find words for a profile in a language, or in EVERY_LANGUAGE."""
    if not profile.words:
        return frozenset()
    libraries = set()
    if language in CHINESE or (language == EVERY_LANGUAGE and profile.supports("zh")):
        libraries.add("jieba")
    if (
        profile.words == DATATROVE
        and language in (ENGLISH, EVERY_LANGUAGE)
        and profile.supports(ENGLISH)
    ):
        libraries.add("spacy")
    return frozenset(libraries)
