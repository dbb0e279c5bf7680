"""What other thresholds would make of a dataset, from counts: exact wherever the counts allow it.

Of a text that was dropped and would then be kept, only the bytes are known. Its tokens are
estimated from its bytes, by the tokens per byte of the tokenized texts in its language; what dedup
and the stages between the rules and dedup would drop of such texts, by what they dropped of the
texts that reached them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from pipelines.quality import Rule
from pipelines.quality.selection import EVERY, OFF
from pipelines.rethreshold.recount import (
    BYTES,
    DOCUMENTS,
    NOW,
    THEN,
    TOKENS,
    Fate,
    Recount,
    SourceRecount,
)
from pipelines.run.origin import Thresholds
from shards.windows import num_windows

Amounts = npt.NDArray[np.float64]
"""float64[3], documents, bytes and tokens."""

_REACHED_DEDUP = [Fate.KEPT, Fate.DEDUPLICATED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of the dataset now, and what it would be then."""

    now: int
    then: int
    exact: bool
    """Whether a run with the other thresholds would come to exactly this number."""

    def __add__(self, other: "Figure") -> "Figure":
        """Return the sum, which is exact if both are."""
        return Figure(
            now=self.now + other.now,
            then=self.then + other.then,
            exact=self.exact and other.exact,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step drops."""

    step: str
    """language, language-score, or a threshold as written in the flag: zh:gopher.min_words."""
    reason: str
    """What the account calls it."""
    bounds: tuple[str, str]
    """Now and then."""
    drops: tuple[int, int] = (0, 0)
    """Documents that this step drops, being the first one that they break."""
    breaks: tuple[int, int] = (0, 0)
    """Documents in the wanted languages that break this step, whichever one drops them."""

    def __add__(self, other: "Step") -> "Step":
        """Return the step with the counts of both."""
        return replace(
            self,
            drops=(self.drops[NOW] + other.drops[NOW], self.drops[THEN] + other.drops[THEN]),
            breaks=(self.breaks[NOW] + other.breaks[NOW], self.breaks[THEN] + other.breaks[THEN]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What thresholds would make of one source, or of all."""

    before_dedup: Mapping[str, Figure]
    """documents, bytes and tokens of the texts that the rules keep."""
    dataset: Mapping[str, Figure]
    """documents, bytes, tokens and samples of the texts that dedup leaves."""
    steps: tuple[Step, ...]
    unjudged: Mapping[str, int]
    """Records dropped before their language is looked at, now as then, by reason."""

    def __add__(self, other: "Forecast") -> "Forecast":
        """Return the sums of both."""
        return Forecast(
            before_dedup=_add_figures(self.before_dedup, other.before_dedup),
            dataset=_add_figures(self.dataset, other.dataset),
            steps=_merge_steps([*self.steps, *other.steps]),
            unjudged={
                reason: self.unjudged.get(reason, 0) + other.unjudged.get(reason, 0)
                for reason in sorted({*self.unjudged, *other.unjudged})
            },
        )


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a forecast depends on besides counts."""

    now: Thresholds
    then: Thresholds
    dedup: bool
    """Whether the dataset was deduplicated."""
    screened: bool
    """Whether a stage between the rules and dedup drops texts: --decontaminate."""
    stride: int
    """Tokens from one window to the next."""


def forecasts(sources: Mapping[str, SourceRecount], setting: Setting) -> dict[str, Forecast]:
    """Return the forecast of each source."""
    return {
        name: _forecast(source, _Densities(sources.values(), source), setting)
        for name, source in sources.items()
    }


def sum_forecasts(parts: Iterable[Forecast]) -> Forecast:
    """Return the sum of one or more forecasts."""
    return reduce(Forecast.__add__, parts)


class _Densities:
    """Tokens per byte of text, not counting eos, of the most similar texts that were tokenized."""

    def __init__(self, sources: Iterable[SourceRecount], source: SourceRecount) -> None:
        self._source = source
        self._sources = list(sources)

    def of(self, language: str) -> float:
        """Return that of a language in the source, else in all sources, else of any language."""
        own, sources = self._source.languages, self._sources
        choices: list[list[Recount]] = [
            [own[language]] if language in own else [],
            [other.languages[language] for other in sources if language in other.languages],
            [*own.values()],
            [counts for other in sources for counts in other.languages.values()],
        ]
        for recounts in choices:
            known = sum((_reached_dedup(counts, NOW) for counts in recounts), np.zeros(3))
            if known[BYTES]:
                return float((known[TOKENS] - known[DOCUMENTS]) / known[BYTES])
        return 0.0


def _reached_dedup(counts: Recount, when: int) -> Amounts:
    reached: Amounts = counts.passed[when, _REACHED_DEDUP].sum(axis=0).astype(np.float64)
    return reached


def _forecast(source: SourceRecount, densities: _Densities, setting: Setting) -> Forecast:
    recounts = source.languages.values()
    passed = sum((counts.passed for counts in recounts), np.zeros((2, len(Fate), 3), np.int64))
    now = passed[NOW, _REACHED_DEDUP].sum(axis=0)
    screened = _fraction(passed[NOW, Fate.SCREENED], now + passed[NOW, Fate.SCREENED])
    admitted = np.zeros(3)
    for language, counts in source.languages.items():
        documents, num_bytes, _ = counts.passed[THEN, Fate.EXCLUDED].tolist()
        tokens = documents + num_bytes * densities.of(language)
        admitted += [documents, num_bytes, tokens]
    admitted *= 1 - screened[DOCUMENTS]
    then = passed[THEN, _REACHED_DEDUP].sum(axis=0) + admitted
    duplicates = _fraction(passed[NOW, Fate.DEDUPLICATED], now)
    left = passed[THEN, Fate.KEPT] + admitted * (1 - duplicates)
    loosened = bool(passed[THEN, Fate.EXCLUDED, DOCUMENTS])
    exact = not loosened or not (setting.screened or screened[DOCUMENTS])
    same = not loosened and bool((passed[NOW] == passed[THEN]).all())
    before = _figures(now, then, exact=(exact, exact, not loosened))
    dataset = before
    if setting.dedup:
        dataset = _figures(passed[NOW, Fate.KEPT], left, exact=(same, same, same))
    tokens = dataset["tokens"]
    samples = Figure(
        now=num_windows(tokens.now, setting.stride),
        then=num_windows(tokens.then, setting.stride),
        exact=tokens.exact,
    )
    return Forecast(
        before_dedup=before,
        dataset={**dataset, "samples": samples},
        steps=_steps(source, setting),
        unjudged=dict(sorted(source.unjudged.items())),
    )


def _fraction(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> Amounts:
    fractions: Amounts = part / np.maximum(whole, 1)
    return fractions


def _figures(
    now: npt.NDArray[np.int64], then: Amounts, *, exact: Sequence[bool]
) -> dict[str, Figure]:
    names = {"documents": DOCUMENTS, "bytes": BYTES, "tokens": TOKENS}
    return {
        name: Figure(now=int(now[index]), then=round(then[index]), exact=exact[index])
        for name, index in names.items()
    }


def _add_figures(ours: Mapping[str, Figure], others: Mapping[str, Figure]) -> dict[str, Figure]:
    return {name: figure + others[name] for name, figure in ours.items()}


def _steps(source: SourceRecount, setting: Setting) -> tuple[Step, ...]:
    """Return what each step drops: the languages, their score, then the rules by language."""
    languages = sorted(source.languages, key=lambda name: (setting.then.group(name), name))
    return _merge_steps(
        replace(
            step,
            drops=tuple(source.languages[language].dropped[:, index].tolist()),
            breaks=tuple(source.languages[language].broken[:, index].tolist()),
        )
        for language in languages
        for index, step in enumerate(_empty_steps(language, setting))
    )


def _merge_steps(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return each step once, with the sums of its counts, in the order of first appearance."""
    merged: dict[str, Step] = {}
    for step in steps:
        merged[step.step] = merged[step.step] + step if step.step in merged else step
    return tuple(merged.values())


def _empty_steps(language: str, setting: Setting) -> Iterable[Step]:
    """Yield the steps that texts of a language meet, without counts."""
    now, then = setting.now, setting.then
    languages = _languages_text(now), _languages_text(then)
    yield Step(step="language", reason="language", bounds=languages)
    scores = f"{now.score:g}", f"{then.score:g}"
    yield Step(step="language-score", reason="language-score", bounds=scores)
    group = then.group(language)
    for old, new in zip(now.rules(language), then.rules(language), strict=True):
        profile = new.metric.partition(".")[0]
        yield Step(
            step=f"{'' if group == EVERY else f'{group}:'}{profile}.{new.threshold}",
            reason=new.reason,
            bounds=(_bound_text(old), _bound_text(new)),
        )


def _languages_text(thresholds: Thresholds) -> str:
    return ",".join(sorted(thresholds.languages or ["all"]))


def _bound_text(rule: Rule) -> str:
    return OFF if math.isnan(rule.bound) else f"{rule.bound:g}"
