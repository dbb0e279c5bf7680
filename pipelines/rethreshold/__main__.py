"""What other thresholds would keep of a dataset's texts, from its audit tables alone.

    python -m pipelines.rethreshold build/wudao --threshold gopher.min_words=30
    python -m pipelines.rethreshold build/wudao --language-threshold 0.65 --languages zh

No text is read and nothing is written.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pipelines.corpus.languages import LANGUAGES
from pipelines.quality.selection import EVERY
from pipelines.rethreshold.forecast import Figure, Forecast, Setting, Step, forecasts, sum_forecasts
from pipelines.rethreshold.recount import recount
from pipelines.run.origin import Thresholds, languages_of, thresholds_of
from shards.command import Parser, print_text
from shards.errors import UserError
from shards.flags import fraction, names, positive
from shards.manifest import NAME, Manifest, TableEntry, parse_dataset, read_manifest
from shards.records import to_json
from shards.run import CAUSAL, GLM
from shards.shown import json_text, visible_line
from shards.storage.files import shape_expected
from shards.storage.remote import AnyPath
from shards.windows import causal_windows, glm_windows

PROGRAM = "pipelines.rethreshold"

_ROW = "{:<28} {:>17} {:>17} {:>17}"
_RULE = "{:<40} {:>14} {:>12} {:>12} {:>12} {:>12}"
_ESTIMATED = (
    "~ estimated. Tokens of texts that were never tokenized: from their bytes, by the tokens per "
    "byte of the texts kept in their language. What dedup and the stages before it would drop of "
    "such texts: the share that they dropped of those that reached them, by source; a duplicate of "
    "a text that is now dropped is assumed to be dropped with it."
)


def main(argv: Sequence[str]) -> int:
    """Print what the command line asks for and return the exit code."""
    return print_text(
        PROGRAM, lambda: run(_parser().parse_args(argv)), stopped="nothing was written"
    )


def run(arguments: argparse.Namespace) -> str:
    """Return what the thresholds of the command line would keep, as text or JSON.

    Raises:
        UserError: There is no such dataset, or its metrics cannot answer the question.
    """
    directory, number = parse_dataset(arguments.dataset)
    manifest = read_manifest(directory)
    manifest = manifest if number is None else manifest.as_of(number)
    with shape_expected(directory / NAME, "build the dataset again"):
        now = thresholds_of(manifest)
        then = thresholds_of(manifest, arguments.threshold)
    if arguments.language_threshold is not None:
        then = replace(then, score=arguments.language_threshold)
    if arguments.languages is not None:
        then = replace(then, languages=languages_of(arguments.languages, now.labels))
        _check_measured(now, then)
    spec = (glm_windows if arguments.objective == GLM else causal_windows)(arguments.length)
    setting = Setting(
        now=now,
        then=then,
        dedup=manifest.options.get("dedup") != "none",
        screened=bool(manifest.options.get("decontaminate")),
        stride=spec.stride,
    )
    sources = forecast_sources(directory, manifest, setting)
    if arguments.json:
        return json_text(_as_json(manifest, sources), indent=1, stream=sys.stdout)
    return "\n".join(map(visible_line, _lines(sources)))


def forecast_sources(
    directory: AnyPath, manifest: Manifest, setting: Setting
) -> dict[str, Forecast]:
    """Return what thresholds would make of each source of a dataset.

    Raises:
        DamageError: An audit table is not what the manifest says.
    """
    tables: dict[str, list[tuple[AnyPath, TableEntry]]] = {name: [] for name in manifest.sources()}
    for generation in manifest.generations:
        for table in generation.audit:
            tables[table.source].append((directory / table.path, table))
    recounts = {name: recount(audit, setting.now, setting.then) for name, audit in tables.items()}
    return forecasts(recounts, setting)


def _check_measured(now: Thresholds, then: Thresholds) -> None:
    every = LANGUAGES | (then.selection.keys() - {EVERY})
    wanted = every if then.languages is None else then.languages
    new = sorted(name for name in wanted if not now.wants(name) and then.rules(name))
    if new:
        had = ", ".join(sorted(now.languages or LANGUAGES))
        raise UserError(
            f"--languages: texts in {new[0]!r} were not measured, since the run kept only {had}, "
            f"and {len(then.rules(new[0]))} rules would judge them. Run the corpus again with that "
            "language, on a sample (--sample 1%) to try it."
        )


def _as_json(manifest: Manifest, sources: Mapping[str, Forecast]) -> object:
    return {
        "dataset": manifest.identity,
        "sources": {name: to_json(forecast) for name, forecast in sources.items()},
        "total": to_json(sum_forecasts(sources.values())),
    }


def _lines(sources: Mapping[str, Forecast]) -> Iterator[str]:
    blocks = dict(sources)
    if len(sources) > 1:
        blocks["in total"] = sum_forecasts(sources.values())
    for name, forecast in blocks.items():
        yield _ROW.format(name, "now", "then", "change")
        yield "before dedup"
        yield from _amounts(forecast.before_dedup)
        yield "in the dataset"
        yield from _amounts(forecast.dataset)
        yield from _steps(forecast)
        yield ""
    amounts = [part for block in blocks.values() for part in (block.before_dedup, block.dataset)]
    if all(figure.exact for part in amounts for figure in part.values()):
        yield "all figures are exact"
    else:
        yield _ESTIMATED


def _amounts(figures: Mapping[str, Figure]) -> Iterable[str]:
    for name, figure in figures.items():
        mark = "" if figure.exact else "~ "
        change = f"{mark}{figure.then - figure.now:+,}"
        yield _ROW.format(f"  {name}", f"{figure.now:,}", f"{mark}{figure.then:,}", change)


def _steps(forecast: Forecast) -> Iterator[str]:
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
        counts = (f"{count:,}" for count in step.drops + step.breaks)
        yield _RULE.format(f"  {step.step}", _bound(step), *counts)


def _bound(step: Step) -> str:
    now, then = step.bounds
    return now if now == then else f"{now} -> {then}"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"python -m {PROGRAM}",
        description="Show what other thresholds would keep of a dataset's texts, from its audit "
        "tables, without reading any text.",
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="its folder; DIR@n: as it was at manifest number n")
    add(
        "--threshold",
        type=names,
        default=(),
        metavar="LIST",
        help="other bounds: gopher.min_words=30, zh:gopher.min_words=30, gopher.max_hashes=off",
    )
    add("--language-threshold", type=fraction, metavar="SCORE", help="least score of the language")
    add("--languages", type=names, metavar="LIST", help="languages to keep, or all")
    add(
        "--length",
        type=positive,
        default=1024,
        metavar="L",
        help="length of a sample. Default: 1024",
    )
    add(
        "--objective",
        choices=(GLM, CAUSAL),
        default=GLM,
        help="what samples are for: glm (L positions) or causal (L tokens). Default: glm",
    )
    add("--json", action="store_true", help="the same as JSON, for programs")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
