"""Shows how many documents other thresholds would keep, from the audit tables alone.

    python -m pipelines.rethreshold build/wudao --threshold gopher.min_words=30
    python -m pipelines.rethreshold build/wudao --language-threshold 0.65 --languages zh

No text is read and nothing is written. Figures are exact if the counts allow it. If a text was
dropped and would now be kept, only its bytes are known: its tokens are estimated from the
tokens per byte of the tokenized texts in its language. The number of such texts that later stages
(screening and dedup) would drop is estimated from the share that these stages dropped.

Steps are numbered in order of application: the language, its score, then each rule of the language.
A text is dropped by the first step that it breaks.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.commit.origin import Thresholds, languages_of, thresholds_of
from pipelines.corpus.languages import LANGUAGES
from pipelines.quality import Rule
from pipelines.quality.catalog import REASONS
from pipelines.quality.selection import EVERY_LANGUAGE, OFF
from pipelines.quality.verdict import first_broken, language_codes, metric_columns
from pipelines.segments.rows import DUPLICATE
from shards.commands.command import Command
from shards.commands.flags import WORD, fraction, names, option, positive
from shards.commands.output import json_text, print_lines
from shards.console import run_module
from shards.errors import DamageError, UserError
from shards.manifest import NAME, Manifest, TableEntry, parse_dataset, read_manifest
from shards.records import to_json
from shards.sampling.plan import CAUSAL, GLM
from shards.sampling.windows import causal_windows, glm_windows, num_windows
from shards.storage.files import json_errors_explained, read_verified
from shards.storage.remote import AnyPath

NOW, THEN = range(2)
"""Indices of the dataset's own thresholds and of the alternative thresholds."""
DOCUMENTS, BYTES, TOKENS = range(3)
"""Indices of the amounts."""
AMOUNTS = ("documents", "bytes", "tokens")
LANGUAGE, SCORE, FIRST_RULE = 0, 1, 2
"""The numbers of the steps for the language and its score, and of the first rule."""
KEPT, DEDUPLICATED, SCREENED, EXCLUDED = FATES = range(4)
"""The fates of a text in a run; SCREENED texts are dropped between rules and dedup, and EXCLUDED
texts by a step."""

_REACHED_DEDUP = [KEPT, DEDUPLICATED]
_BATCH_ROWS = 1 << 17
_ROW = "{:<28} {:>17} {:>17} {:>17}"
_RULE = "{:<40} {:>14} {:>12} {:>12} {:>12} {:>12}"
_ESTIMATED = (
    "~ estimated. Tokens of texts that were never tokenized: from their bytes, by the tokens per "
    "byte of the texts kept in their language. Drops of such texts by dedup and the steps before "
    "it: the share that they dropped of the texts that reached them, by source; a duplicate of "
    "a text that is now dropped is assumed to be dropped with it."
)

Counts = npt.NDArray[np.int64]
Amounts = npt.NDArray[np.float64]
"""float64[3]: documents, bytes and tokens."""


@dataclass(frozen=True, kw_only=True)
class Rethreshold(Command):
    """Count the documents that other thresholds would keep, without reading any text."""

    STOPPED = "nothing was written"

    dataset: str = option(MISSING, flag=WORD, metavar="DATASET")
    """Folder of the dataset; DIR@N is the dataset at manifest N."""
    threshold: tuple[str, ...] = option((), type=names, metavar="LIST")
    """Thresholds to try: gopher.min_words=30, zh:gopher.min_words=30, gopher.max_hashes=off."""
    language_threshold: float | None = option(None, type=fraction, metavar="SCORE")
    """Minimum score of the identified language."""
    languages: tuple[str, ...] | None = option(None, type=names, metavar="LIST")
    """Languages to keep, or all."""
    length: int = option(1024, type=positive, metavar="L")
    """Length of a sample."""
    objective: str = option(GLM, choices=(GLM, CAUSAL))
    """Objective of the samples: glm (L positions) or causal (L tokens)."""
    json: bool = option(False)
    """Print the result as JSON."""

    def run(self) -> None:
        """Print what the thresholds would keep, as text or JSON.

        Raises:
            UserError: There is no such dataset, or the dataset's metrics do not suffice.
        """
        directory, number = parse_dataset(self.dataset)
        manifest = read_manifest(directory)
        manifest = manifest if number is None else manifest.as_of(number)
        with json_errors_explained(directory / NAME, "build the dataset again"):
            now, then = thresholds_of(manifest), thresholds_of(manifest, self.threshold)
        if self.language_threshold is not None:
            then = replace(then, score=self.language_threshold)
        if self.languages is not None:
            then = replace(then, languages=languages_of(self.languages, now.labels))
            _check_measured(now, then)
        windows = glm_windows if self.objective == GLM else causal_windows
        sources = forecasts(directory, manifest, (now, then), windows(self.length).stride)
        if not self.json:
            print_lines(_lines(sources))
            return
        answer = {
            "dataset": manifest.identity,
            "sources": {name: to_json(forecast) for name, forecast in sources.items()},
            "total": to_json(sum_forecasts([*sources.values()])),
        }
        print_lines(json_text(answer, indent=1, stream=sys.stdout).split("\n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the dataset with its own thresholds, and with the alternative ones."""

    now: int
    then: int
    exact: bool
    """Whether a run with the alternative thresholds would produce exactly this number."""

    def __add__(self, other: "Figure") -> "Figure":
        return Figure(
            now=self.now + other.now, then=self.then + other.then, exact=self.exact and other.exact
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDrops:
    """The documents that one step drops."""

    step: str
    """The name of the step: language, language-score, or a threshold as written in the flag, such
    as zh:gopher.min_words."""
    reason: str
    """The reason that the account records for this step."""
    bounds: tuple[str, str]
    """The step's bounds in the dataset's own thresholds and in the alternative ones."""
    drops: tuple[int, ...]
    """The number of documents that this step drops, as their first broken step, by NOW and THEN."""
    breaks: tuple[int, ...]
    """The number of documents in languages to keep that break this step, by NOW and THEN."""

    def __add__(self, other: "StepDrops") -> "StepDrops":
        drops, breaks = map(add, self.drops, other.drops), map(add, self.breaks, other.breaks)
        return replace(other, drops=tuple(drops), breaks=tuple(breaks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The effect of alternative thresholds on one source, or on all sources."""

    before_dedup: Mapping[str, Figure]
    """The documents, bytes and tokens of the texts that the rules keep."""
    dataset: Mapping[str, Figure]
    """The documents, bytes, tokens and samples of the texts that remain after dedup."""
    steps: tuple[StepDrops, ...]
    unjudged: Mapping[str, int]
    """Records dropped before their language is identified, under any thresholds, by reason."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ThresholdCounts:
    """The effect of two sets of thresholds on the texts of one source in one language."""

    dropped: Counts
    """int64[2, steps]: the number of texts that each step drops, under NOW and THEN."""
    broken: Counts
    """int64[2, steps]: the number of texts in a language to keep that break each step."""
    passed: Counts
    """int64[2, fates, 3]: the number, bytes and tokens of the texts that break no step."""

    @classmethod
    def zero(cls, num_rules: int) -> "ThresholdCounts":
        """Return counts that are all zero."""
        shapes = (2, FIRST_RULE + num_rules), (2, FIRST_RULE + num_rules), (2, len(FATES), 3)
        dropped, broken, passed = (np.zeros(shape, np.int64) for shape in shapes)
        return cls(dropped=dropped, broken=broken, passed=passed)


@dataclass(kw_only=True)
class SourceCounts:
    """The counts of one source."""

    languages: dict[str, ThresholdCounts] = field(default_factory=dict)
    unjudged: Counter[str] = field(default_factory=Counter)
    """Records that were dropped before their language was identified, by reason."""


def forecasts(
    directory: AnyPath, manifest: Manifest, both: tuple[Thresholds, Thresholds], stride: int
) -> dict[str, Forecast]:
    """Return the effect of alternative thresholds on each source of a dataset.

    Args:
        directory: The folder of the dataset.
        manifest: The dataset's manifest.
        both: The dataset's own thresholds, and alternative thresholds with the same profiles. The
            alternative ones have no rules for languages that the dataset's own ones exclude.
        stride: The number of tokens from the start of one window to the next.

    Raises:
        DamageError: An audit table does not match the manifest.
    """
    sources = {name: SourceCounts() for name in manifest.sources()}
    for generation in manifest.generations:
        for table in generation.audit:
            for batch in _batches(directory / table.path, table, _columns(both[THEN])):
                _count_batch(sources[table.source], batch, both, path=directory / table.path)
    made = {}
    for name, source in sources.items():
        before, dataset = _figures(source, [*sources.values()], manifest)
        tokens = dataset["tokens"]
        now, then = (num_windows(each, stride) for each in (tokens.now, tokens.then))
        made[name] = Forecast(
            before_dedup=before,
            dataset={**dataset, "samples": Figure(now=now, then=then, exact=tokens.exact)},
            steps=_steps(source, both),
            unjudged=dict(sorted(source.unjudged.items())),
        )
    return made


def sum_forecasts(parts: Sequence[Forecast]) -> Forecast:
    """Return the sum of one or more forecasts; a figure is exact if all its summands are exact."""

    def summed(figures: Sequence[Mapping[str, Figure]]) -> dict[str, Figure]:
        return {name: reduce(add, (each[name] for each in figures)) for name in figures[0]}

    return Forecast(
        before_dedup=summed([part.before_dedup for part in parts]),
        dataset=summed([part.dataset for part in parts]),
        steps=_merged(step for part in parts for step in part.steps),
        unjudged=dict(sorted(sum((Counter(part.unjudged) for part in parts), Counter()).items())),
    )


def _check_measured(now: Thresholds, then: Thresholds) -> None:
    every = LANGUAGES | (then.selection.keys() - {EVERY_LANGUAGE})
    wanted = every if then.languages is None else then.languages
    new = sorted(name for name in wanted if not now.keeps_language(name) and then.rules(name))
    if new:
        had = ", ".join(sorted(now.languages or LANGUAGES))
        raise UserError(
            f"--languages: texts in {new[0]!r} were not measured, since the run kept only {had}, "
            f"and {len(then.rules(new[0]))} rules would judge them. Run the corpus again with that "
            "language, on a sample (--sample 1%) to try it."
        )


def _columns(thresholds: Thresholds) -> list[str]:
    metrics = {
        rule.metric
        for profiles in thresholds.selection.values()
        for bound_profile in profiles
        for rule in bound_profile.profile.rules(bound_profile.bounds)
    }
    return ["language", "score", "reason", "bytes", "tokens", *sorted(metrics)]


def _batches(path: AnyPath, entry: TableEntry, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    content = pa.py_buffer(read_verified(path, entry))
    try:
        file = pq.ParquetFile(content, read_dictionary=["language", "reason"])
    except (OSError, pa.ArrowException) as error:
        raise DamageError(
            f"{path} cannot be read ({error}): restore the audit table from a copy, or build the "
            "dataset again."
        ) from error
    missing = sorted(set(columns) - set(file.schema_arrow.names))
    if missing:
        raise DamageError(
            f"{path} has no column {missing[0]}, although the manifest says that it was measured: "
            "build the dataset again."
        )
    yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns))


def _count_batch(
    source: SourceCounts,
    batch: pa.RecordBatch,
    both: tuple[Thresholds, Thresholds],
    *,
    path: AnyPath,
) -> None:
    """Add the texts of a batch to the counts of their source."""
    languages, codes = language_codes(batch["language"])
    reasons, reason_codes = language_codes(batch["reason"])
    unjudged = np.bincount(reason_codes[(codes < 0) & (reason_codes >= 0)], minlength=len(reasons))
    source.unjudged.update(
        {str(reasons[code]): int(unjudged[code]) for code in np.flatnonzero(unjudged)}
    )
    fates = _fates(reasons, both[NOW])[reason_codes]
    for code in np.unique(codes[codes >= 0]).tolist():
        language, indices = str(languages[code]), np.flatnonzero(codes == code)
        rules = both[NOW].rules(language)
        counts = source.languages.setdefault(language, ThresholdCounts.zero(len(rules)))
        table = batch.take(indices) if len(indices) < len(batch) else batch
        amounts, own = _amounts(table), fates[indices]
        for when, thresholds in enumerate(both):
            broken = _broken(table, thresholds, language)
            dropped = broken.any(axis=0)
            if when == NOW and ((own == EXCLUDED) != dropped).any():
                raise DamageError(
                    f"{path}: the metrics of a text in {language!r} do not lead to the verdict "
                    "next to them, so another version of the profiles made it. Build the dataset "
                    "again with this version."
                )
            first = np.argmax(broken[:, dropped], axis=0)
            counts.dropped[when] += np.bincount(first, minlength=len(broken))
            counts.broken[when] += broken.sum(axis=1)
            for fate in FATES:
                counts.passed[when, fate] += amounts[:, ~dropped & (own == fate)].sum(axis=1)


def _fates(reasons: Sequence[str | None], now: Thresholds) -> npt.NDArray[np.int8]:
    """Return the fate that each reason means; the last entry is for texts that have no reason."""
    known: dict[str | None, int] = {
        **dict.fromkeys((DUPLICATE, f"near-{DUPLICATE}"), DEDUPLICATED),
        **dict.fromkeys(("language", "language-score", *REASONS, *now.reasons), EXCLUDED),
    }
    return np.array([*(known.get(reason, SCREENED) for reason in reasons), KEPT], np.int8)


def _amounts(table: pa.RecordBatch) -> Counts:
    """Return int64[3, n]: the number 1, the bytes and the tokens of each text."""
    size, tokens = (
        table[name].fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in ("bytes", "tokens")
    )
    return np.stack([np.ones_like(size), size, tokens])


def _broken(table: pa.RecordBatch, thresholds: Thresholds, language: str) -> npt.NDArray[np.bool_]:
    """Return bool[steps, n]: which steps each text breaks."""
    rules = thresholds.rules(language)
    broken = np.zeros((FIRST_RULE + len(rules), table.num_rows), bool)
    if not thresholds.keeps_language(language):
        broken[LANGUAGE] = True
        return broken
    broken[SCORE] = table["score"].to_numpy(zero_copy_only=False) < np.float32(thresholds.score)
    metrics = metric_columns(table, [rule.metric for rule in rules])
    for step, rule in enumerate(rules, FIRST_RULE):
        broken[step] = first_broken([rule], {rule.metric: metrics[rule.metric]}) == 0
    return broken


def _figures(
    source: SourceCounts, sources: Sequence[SourceCounts], manifest: Manifest
) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """Return the amounts of a source before dedup and in the dataset."""
    passed: Counts = np.zeros((2, len(FATES), 3), np.int64)
    admitted = np.zeros(3)
    for language, counts in source.languages.items():
        passed += counts.passed
        documents, num_bytes, _ = counts.passed[THEN, EXCLUDED].tolist()
        tokens = documents + num_bytes * _density(language, source, sources)
        admitted += [documents, num_bytes, tokens]
    now = passed[NOW, _REACHED_DEDUP].sum(axis=0)
    screened = _share(passed[NOW, SCREENED], now + passed[NOW, SCREENED])[DOCUMENTS]
    admitted *= 1 - screened
    then = passed[THEN, _REACHED_DEDUP].sum(axis=0) + admitted
    left = passed[THEN, KEPT] + admitted * (1 - _share(passed[NOW, DEDUPLICATED], now))
    loosened = bool(passed[THEN, EXCLUDED, DOCUMENTS])
    # --decontaminate, a stage between the rules and dedup, drops texts.
    exact = not loosened or not (manifest.options.get("decontaminate") or screened)
    before = _named(now, then, exact=(exact, exact, not loosened))
    if manifest.options.get("dedup") == "none":
        return before, before
    same = not loosened and bool((passed[NOW] == passed[THEN]).all())
    return before, _named(passed[NOW, KEPT], left, exact=(same, same, same))


def _density(language: str, source: SourceCounts, sources: Sequence[SourceCounts]) -> float:
    """Return tokens per byte, not counting eos, of the most similar texts that were tokenized.

    These are the texts in the same language from the same source, else from all sources, else texts
    in any language.
    """
    everywhere = [counts for other in sources for counts in other.languages.values()]
    choices = (
        [source.languages[language]],
        [other.languages[language] for other in sources if language in other.languages],
        [*source.languages.values()],
        everywhere,
    )
    for choice in choices:
        known = sum(each.passed[NOW, _REACHED_DEDUP].sum(axis=0) for each in choice)
        if known[BYTES]:
            return float((known[TOKENS] - known[DOCUMENTS]) / known[BYTES])
    return 0.0


def _share(part: Counts, whole: Counts) -> Amounts:
    shares: Amounts = part / np.maximum(whole, 1)
    return shares


def _named(now: Counts, then: Amounts, *, exact: Sequence[bool]) -> dict[str, Figure]:
    return {
        name: Figure(now=int(now[index]), then=round(then[index]), exact=exact[index])
        for index, name in enumerate(AMOUNTS)
    }


def _steps(source: SourceCounts, both: tuple[Thresholds, Thresholds]) -> tuple[StepDrops, ...]:
    """Return the drops of each step: language, score, then the rules by language."""
    languages = sorted(source.languages, key=lambda name: (both[THEN].group(name), name))
    return _merged(
        StepDrops(
            **step,
            drops=tuple(source.languages[language].dropped[:, index].tolist()),
            breaks=tuple(source.languages[language].broken[:, index].tolist()),
        )
        for language in languages
        for index, step in enumerate(_steps_of(language, both))
    )


def _merged(steps: Iterable[StepDrops]) -> tuple[StepDrops, ...]:
    """Return each step once, with the sums of its counts, in the order of first appearance."""
    merged: dict[str, StepDrops] = {}
    for step in steps:
        known = merged.get(step.step)
        merged[step.step] = known + step if known else step
    return tuple(merged.values())


def _steps_of(language: str, both: tuple[Thresholds, Thresholds]) -> Iterator[dict[str, Any]]:
    """Yield the name, reason and bounds of each step that texts of a language go through."""
    now, then = both
    languages = tuple(",".join(sorted(each.languages or ["all"])) for each in both)
    yield {"step": "language", "reason": "language", "bounds": languages}
    scores = f"{now.score:g}", f"{then.score:g}"
    yield {"step": "language-score", "reason": "language-score", "bounds": scores}
    group = then.group(language)
    for old, new in zip(now.rules(language), then.rules(language), strict=True):
        profile = new.metric.partition(".")[0]
        yield {
            "step": f"{'' if group == EVERY_LANGUAGE else f'{group}:'}{profile}.{new.threshold}",
            "reason": new.reason,
            "bounds": (_bound_text(old), _bound_text(new)),
        }


def _bound_text(rule: Rule) -> str:
    return OFF if math.isnan(rule.bound) else f"{rule.bound:g}"


def _lines(sources: Mapping[str, Forecast]) -> Iterator[str]:
    blocks = dict(sources)
    if len(sources) > 1:
        blocks["in total"] = sum_forecasts([*sources.values()])
    for name, forecast in blocks.items():
        yield _ROW.format(name, "now", "then", "change")
        yield "before dedup"
        yield from _amount_lines(forecast.before_dedup)
        yield "in the dataset"
        yield from _amount_lines(forecast.dataset)
        yield from _step_lines(forecast)
        yield ""
    amounts = [part for block in blocks.values() for part in (block.before_dedup, block.dataset)]
    is_exact = all(figure.exact for part in amounts for figure in part.values())
    yield "all figures are exact" if is_exact else _ESTIMATED


def _amount_lines(figures: Mapping[str, Figure]) -> Iterator[str]:
    for name, figure in figures.items():
        mark = "" if figure.exact else "~ "
        change = f"{mark}{figure.then - figure.now:+,}"
        yield _ROW.format(f"  {name}", f"{figure.now:,}", f"{mark}{figure.then:,}", change)


def _step_lines(forecast: Forecast) -> Iterator[str]:
    shown = [
        step
        for step in forecast.steps
        if any(step.drops + step.breaks) or step.bounds[0] != step.bounds[1]
    ]
    if shown or forecast.unjudged:
        yield _RULE.format("dropped by", "bound", "now", "then", "break it: now", "then")
    for reason, documents in forecast.unjudged.items():
        yield _RULE.format(f"  {reason}", "", f"{documents:,}", f"{documents:,}", "", "")
    for step in shown:
        bound = " -> ".join(dict.fromkeys(step.bounds))
        counts = (f"{count:,}" for count in step.drops + step.breaks)
        yield _RULE.format(f"  {step.step}", bound, *counts)


if __name__ == "__main__":
    sys.exit(run_module("pipelines.rethreshold"))
