"""Quality: texts are measured by the profiles of their language, and judged by their metrics.

For every text all metrics of all profiles of its language are computed, whichever rule it breaks,
so that other bounds can be tried on the metrics alone.
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
"""The maximum number of characters measured at once: more leave the processor's cache, fewer pay
for calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityResult:
    """The verdicts and metrics of the profiles for n texts."""

    texts: list[str]
    """The texts; c4 removes lines from some."""
    changed: npt.NDArray[np.bool_]
    """bool[n]: whether the text was changed."""
    metrics: dict[str, npt.NDArray[np.float32]]
    """float32[n] by column; NaN if the text's language does not have that profile."""
    reasons: list[str | None]
    """The reason of the first rule broken; None if the text stays."""


class QualityRules:
    """The profiles of a run, by language."""

    def __init__(self, selection: Selection) -> None:
        """Make the profiles of a selection: the profiles and bounds by language."""
        self._selection = selection
        self._libraries = WordLibraries()
        self._rules: dict[str, tuple[Rule, ...]] = {}
        self._plans: dict[str, _Plan] = {}
        self._distinct: dict[Any, _Plan] = {}

    @classmethod
    def parse(
        cls,
        specs: Iterable[str],
        overrides: Iterable[str] = (),
        *,
        labels: Labels = LANGUAGES,
    ) -> "QualityRules":
        """Return the requested profiles and bounds, written as in selection.py.

        Args:
            specs: The profiles of languages.
            overrides: Other bounds than the published ones; those of models are left out.
            labels: The languages that can be named; None: any.

        Raises:
            UserError: a name is unknown or written twice, or a profile cannot judge the language it
                is named for, or it needs a library that is not installed.
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
        """Every reason that any profile may give, those of the user's profiles and models last."""
        return tuple(dict.fromkeys((*REASONS, *reasons_of(self._selection))))

    @cached_property
    def custom_code(self) -> dict[str, str]:
        """The modules of profiles and custom splitters, each with the hash of its code."""
        splitters = {
            module_of(bound.splitter)
            for chosen in self._selection.values()
            for bound in chosen
            if bound.splitter
        }
        modules = {profile.module for profile in self._own_profiles} | splitters
        return {module: code_hash(module) for module in sorted(modules)}

    @cached_property
    def _own_profiles(self) -> tuple[Profile, ...]:
        """The custom profiles, by name."""
        own = {
            bound.profile.name: bound.profile
            for chosen in self._selection.values()
            for bound in chosen
            if bound.profile.module
        }
        return tuple(own[name] for name in sorted(own))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the metric columns, in a fixed order."""
        used = [bound.profile for chosen in self._selection.values() for bound in chosen]
        models = (profile for profile in used if profile not in PROFILES and not profile.module)
        return (
            *(column for one in PROFILES if one in used for column in one.columns),
            *(column for own in self._own_profiles for column in own.columns),
            *sorted({column for model in models for column in model.columns}),
        )

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The metric columns: float32, one for every metric in use, in a fixed order."""
        return tuple(pa.field(column, pa.float32()) for column in self.columns)

    @property
    def selection(self) -> Selection:
        """The profiles and bounds by language."""
        return self._selection

    def rules(self, language: str) -> tuple[Rule, ...]:
        """Return the rules for texts of a language, in order of application."""
        if language not in self._rules:
            self._rules[language] = rules_for(self._selection, language)
        return self._rules[language]

    def judge(self, texts: Sequence[str], languages: Sequence[str]) -> QualityResult:
        """Return the judgement of texts in these languages (labels of the model)."""
        values = np.full((len(self.columns), len(texts)), np.nan, np.float32)
        passed_on = list(texts)
        encoded = pa.array(languages, pa.string()).dictionary_encode()
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        for plan, places in self._places_by_plan(*language_codes(encoded)):
            for part in _parts(places, lengths):
                columns, strings = self._measure(
                    plan, [texts[at] for at in part], [languages[at] for at in part]
                )
                values[plan.rows[:, None], part] = columns
                for place, text in zip(part, strings, strict=True):
                    passed_on[place] = text
        metrics = dict(zip(self.columns, values, strict=True))
        return QualityResult(
            texts=passed_on,
            changed=np.fromiter(map(is_not, texts, passed_on), np.bool_, len(texts)),
            metrics=metrics,
            reasons=self._reasons(encoded, metrics).to_pylist(),
        )

    def _measure(
        self, plan: "_Plan", texts: Sequence[str], languages: Sequence[str]
    ) -> tuple[npt.NDArray[np.float64], Sequence[str]]:
        """Return the metrics of texts by column, and the texts that the profiles pass on."""
        plain = {language: plain_code(language) for language in {*languages}}
        own = [plain[language] for language in languages]
        batch = TextBatch(texts, own, plan.splits, self._libraries)
        columns: list[Column] = []
        for measure, bounds in plan.steps:
            batch, measured = measure(batch, bounds)
            columns += list(measured)
        return np.array(columns, np.float64), batch.strings

    def reasons(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        """Return the reason of the first rule that each row breaks, null if it breaks none.

        Args:
            table: The metric columns, float32, and `language`, a string column. A row whose
                language is null has no reason.

        Returns:
            A string array of the table's length.

        Raises:
            UserError: the table lacks a column.
        """
        metrics = metric_columns(table, self.columns)
        return self._reasons(table["language"], metrics)

    def describe(self) -> dict[str, Any]:
        """Return the options behind the verdicts, JSON-able: per language the profiles and bounds.

        A bound that is off is None. Languages and bounds are sorted, profiles in order of
        application.
        """
        return {
            language: [
                {
                    "profile": applied.profile.name,
                    "bounds": bounds_as_json(applied.bounds),
                }
                for applied in chosen
            ]
            for language, chosen in sorted(self._selection.items())
        }

    @property
    def library_versions(self) -> Mapping[str, str]:
        """The libraries that split words, with their versions, and the hash of custom code."""
        libraries = sorted(self._needed)
        words = {"words": ", ".join(map(library_version, libraries))} if libraries else {}
        code = {f"code of {name}": f"{name} {code}" for name, code in self.custom_code.items()}
        return words | code

    def warnings(self, languages: Iterable[str]) -> tuple[str, ...]:
        """Return warnings to give before texts of these languages are judged."""
        return find_warnings(self._selection, languages)

    @cached_property
    def _needed(self) -> frozenset[str]:
        """The libraries that find words."""
        return frozenset(
            library
            for language, chosen in self._selection.items()
            for bound in chosen
            if not bound.splitter
            for library in _libraries(bound.profile, plain_code(language))
        )

    def _places_by_plan(
        self, names: Sequence[str | None], codes: Places
    ) -> Iterator[tuple["_Plan", Places]]:
        """Yield the profiles to apply, and the places of the texts to apply them to."""
        plans = [self._plan(name or "") for name in names]
        for plan in dict.fromkeys(plans):
            if plan.steps:
                same = [code for code, other in enumerate(plans) if other is plan]
                yield plan, np.flatnonzero(np.isin(codes, same))

    def _plan(self, language: str) -> "_Plan":
        """Return the profiles for texts of a language: equal for texts measured together."""
        if language not in self._plans:
            chosen = profiles_for(self._selection, language)
            plain = plain_code(language)
            own = {bound.splitter for bound in chosen if bound.splitter}
            # Models of several languages have the same name.
            profiles = [(bound.profile, sorted(bound.bounds.items())) for bound in chosen]
            key = [(one.name, id(one.measure_batch), bounds) for one, bounds in profiles]
            whose = repr((key, own, not own and plain in CHINESE))
            if whose not in self._distinct:
                split = load_splitter(own.pop()) if own else None
                columns = [column for bound in chosen for column in bound.profile.columns]
                self._distinct[whose] = _Plan(
                    steps=tuple((_measure_of(bound.profile), bound.bounds) for bound in chosen),
                    rows=np.array([self.columns.index(column) for column in columns], np.intp),
                    splits=word_splitters(plain, self._libraries, split),
                )
            self._plans[language] = self._distinct[whose]
        return self._plans[language]

    def _reasons(self, languages: pa.Array, metrics: Metrics) -> pa.Array:
        names, codes = language_codes(languages)
        reasons = self.all_reasons
        broken = np.full(len(codes), -1, np.int16)  # indices into them
        for code, language in enumerate(names):
            rules = () if language is None else self.rules(language)
            rows = np.flatnonzero(codes == code) if rules else ()
            if len(rows):
                own = {rule.metric: metrics[rule.metric][rows] for rule in rules}
                numbers = np.array([*(reasons.index(rule.reason) for rule in rules), -1])
                broken[rows] = numbers[first_broken(rules, own)]
        indices = pa.array(broken, mask=broken < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(reasons)).cast(pa.string())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """How to measure texts of some languages, and the rows of the array of metrics to fill."""

    steps: tuple[tuple[BatchMeasure, Bounds], ...]
    """Measures in order of application, with their bounds."""
    splits: Mapping[str, WordSplitter]
    """The functions that find the words of these texts, by the way to count them."""
    rows: npt.NDArray[np.intp]


def _measure_of(profile: Profile) -> BatchMeasure:
    assert profile.measure_batch is not None  # a profile that can be named has one
    return profile.measure_batch


def _parts(places: Places, lengths: Places) -> Iterator[Places]:
    """Yield the places in parts whose texts have BATCH_CHARACTERS or are one."""
    sums = cumsum_from_zero(lengths[places])
    first = 0
    while first < len(places):
        last = int(np.searchsorted(sums, sums[first] + BATCH_CHARACTERS, side="right")) - 1
        last = max(last, first + 1)
        yield places[first:last]
        first = last


def _libraries(profile: Profile, language: str) -> frozenset[str]:
    """Return the libraries that split words for a profile, in one language or in EVERY_LANGUAGE."""
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
