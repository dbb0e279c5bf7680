"""What other thresholds would make of a dataset, from counts: exact where counts say it.

Known of a text that now falls are its number and bytes. Its tokens are estimated from its bytes by
what the texts of its language have that were tokenized, and what the stages between the rules and
dedup, and dedup itself, would drop of such texts by what they drop of those that reached them.
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
    DOUBLE,
    KEPT,
    LATER,
    NOW,
    RULED,
    THEN,
    TOKENS,
    Recount,
    SourceRecount,
)
from pipelines.run.origin import Thresholds
from shards.windows import num_windows

Amounts = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of the dataset now, and what it would be then."""

    now: int
    then: int
    exact: bool
    """Whether a run with the other thresholds would come to the same."""

    def __add__(self, other: "Figure") -> "Figure":
        """Return both together."""
        return Figure(
            now=self.now + other.now,
            then=self.then + other.then,
            exact=self.exact and other.exact,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one step drops."""

    step: str
    """language, language-score or a threshold as a person sets it: zh:gopher.min_words."""
    reason: str
    """What the account calls it."""
    bounds: tuple[str, str]
    """Now and then."""
    drops: tuple[int, int] = (0, 0)
    """Documents that fall here, which is the first step that they break."""
    breaks: tuple[int, int] = (0, 0)
    """Documents in the languages asked for that break it, wherever they fall."""

    def __add__(self, other: "Line") -> "Line":
        """Return the line of both together."""
        return replace(
            self,
            drops=_summed(self.drops, other.drops),
            breaks=_summed(self.breaks, other.breaks),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What thresholds would make of one source, or of all."""

    before_dedup: Mapping[str, Figure]
    """documents, bytes and tokens of the texts that the rules keep."""
    dataset: Mapping[str, Figure]
    """documents, bytes, tokens and samples of the texts that dedup leaves."""
    steps: tuple[Line, ...]
    unjudged: Mapping[str, int]
    """Records that fall before their language is asked for, now as then, by reason."""

    def __add__(self, other: "Forecast") -> "Forecast":
        """Return both together."""
        lines = {line.step: line for line in self.steps}
        for line in other.steps:
            lines[line.step] = lines[line.step] + line if line.step in lines else line
        return Forecast(
            before_dedup=_added(self.before_dedup, other.before_dedup),
            dataset=_added(self.dataset, other.dataset),
            steps=tuple(lines.values()),
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


def total(found: Iterable[Forecast]) -> Forecast:
    """Return the sum of one forecast at least."""
    return reduce(Forecast.__add__, found)


class _Densities:
    """Tokens per byte of text, eos apart, from the nearest texts that were tokenized."""

    def __init__(self, sources: Iterable[SourceRecount], source: SourceRecount) -> None:
        self._near = [source, *sources]

    def of(self, language: str) -> float:
        """Return that of a language in the source, else in all of them, else of any language."""
        near, *every = self._near
        choices: list[list[Recount]] = [
            [near.languages[language]] if language in near.languages else [],
            [each.languages[language] for each in every if language in each.languages],
            [*near.languages.values()],
            [counts for each in every for counts in each.languages.values()],
        ]
        for counts in choices:
            known = sum((_reached(each, NOW) for each in counts), np.zeros(3))
            if known[BYTES]:
                return float((known[TOKENS] - known[DOCUMENTS]) / known[BYTES])
        return 0.0


def _reached(counts: Recount, when: int) -> Amounts:
    """Return the amounts of texts that reached dedup."""
    reached: Amounts = counts.passed[when, [KEPT, DOUBLE]].sum(axis=0).astype(np.float64)
    return reached


def _forecast(source: SourceRecount, densities: _Densities, setting: Setting) -> Forecast:
    every = source.languages.values()
    passed = sum((counts.passed for counts in every), np.zeros((2, 4, 3), np.int64))
    now = passed[NOW, [KEPT, DOUBLE]].sum(axis=0)
    screened = _share(passed[NOW, LATER], now + passed[NOW, LATER])
    admitted = np.zeros(3)
    for language, counts in source.languages.items():
        documents, size, _ = counts.passed[THEN, RULED].tolist()
        admitted += [documents, size, documents + size * densities.of(language)]
    admitted *= 1 - screened[DOCUMENTS]
    then = passed[THEN, [KEPT, DOUBLE]].sum(axis=0) + admitted
    left = passed[THEN, KEPT] + admitted * (1 - _share(passed[NOW, DOUBLE], now))
    loosened = bool(passed[THEN, RULED, DOCUMENTS])
    exact = not loosened or not (setting.screened or screened[DOCUMENTS])
    same = not loosened and bool((passed[NOW] == passed[THEN]).all())
    before = _figures(now, then, exact=(exact, exact, not loosened))
    dataset = before
    if setting.dedup:
        dataset = _figures(passed[NOW, KEPT], left, exact=(same, same, same))
    tokens = dataset["tokens"]
    windows = [num_windows(count, setting.stride) for count in (tokens.now, tokens.then)]
    samples = Figure(now=windows[NOW], then=windows[THEN], exact=tokens.exact)
    return Forecast(
        before_dedup=before,
        dataset={**dataset, "samples": samples},
        steps=_lines(source, setting),
        unjudged=dict(sorted(source.unjudged.items())),
    )


def _share(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> Amounts:
    shares: Amounts = part / np.maximum(whole, 1)
    return shares


def _figures(
    now: npt.NDArray[np.int64], then: Amounts, *, exact: Sequence[bool]
) -> dict[str, Figure]:
    return {
        name: Figure(now=int(now[at]), then=round(then[at]), exact=exact[at])
        for at, name in enumerate(("documents", "bytes", "tokens"))
    }


def _lines(source: SourceRecount, setting: Setting) -> tuple[Line, ...]:
    """Return what each step drops: the languages, their score, then the rules by language."""
    lines: dict[str, Line] = {}
    languages = sorted(source.languages, key=lambda name: (setting.then.group(name), name))
    for language in languages:
        counts = source.languages[language]
        for at, step in enumerate(_steps(language, setting)):
            line = replace(
                step, drops=_pair(counts.first[:, at]), breaks=_pair(counts.broken[:, at])
            )
            lines[line.step] = lines[line.step] + line if line.step in lines else line
    return tuple(lines.values())


def _steps(language: str, setting: Setting) -> Iterable[Line]:
    """Yield the steps that texts of a language meet, without counts."""
    both = setting.now, setting.then
    names = [",".join(sorted(each.languages or ["all"])) for each in both]
    yield Line(step="language", reason="language", bounds=(names[NOW], names[THEN]))
    scores = [f"{each.score:g}" for each in both]
    yield Line(step="language-score", reason="language-score", bounds=(scores[NOW], scores[THEN]))
    group = setting.then.group(language)
    for now, then in zip(*(each.rules(language) for each in both), strict=True):
        profile = then.metric.partition(".")[0]
        yield Line(
            step=f"{'' if group == EVERY else f'{group}:'}{profile}.{then.threshold}",
            reason=then.reason,
            bounds=(_shown(now), _shown(then)),
        )


def _shown(rule: Rule) -> str:
    return OFF if math.isnan(rule.bound) else f"{rule.bound:g}"


def _pair(values: npt.NDArray[np.int64]) -> tuple[int, int]:
    return int(values[NOW]), int(values[THEN])


def _summed(ours: tuple[int, int], others: tuple[int, int]) -> tuple[int, int]:
    return ours[NOW] + others[NOW], ours[THEN] + others[THEN]


def _added(ours: Mapping[str, Figure], others: Mapping[str, Figure]) -> dict[str, Figure]:
    return {name: figure + others[name] for name, figure in ours.items()}
