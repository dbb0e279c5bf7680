"""The steps that process every batch of a run; steps in brackets are optional.

    [block] ─▶ clean ─▶ langid ─▶ [quality] ─▶ [decontaminate] ─▶ [mask] ─▶ tokenize ─▶ fingerprint

Each process makes the steps once, from the options of the run. A custom filter runs after the step
that it names, or at that step's place if the run does not have the step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpus.languages import LANGUAGES
from pipelines.corpus.options import Options
from pipelines.steps.blocklist import BlockStep
from pipelines.steps.clean import CleanStep
from pipelines.steps.decontaminate import DecontaminateStep
from pipelines.steps.filter_spec import (
    CLEAN,
    CONTAMINATION,
    LANGUAGE,
    MASK,
    QUALITY,
    READ,
    parse_filter,
)
from pipelines.steps.fingerprint import FingerprintStep
from pipelines.steps.judge import QualityFilter, load_scorers
from pipelines.steps.langid import IdentifyStep
from pipelines.steps.pii import MaskStep
from pipelines.steps.step import Step
from pipelines.steps.tokenize import TokenizeStep
from pipelines.steps.user_filter import UserFilterStep, load_filters

_PREPARED = ("en", "zh")
"""The languages that `prepare` compiles kernels for if all languages are kept."""


def load_steps(options: Options, *, run: str) -> "StepPipeline":
    """Return the steps of a run, which stay loaded in this process until `take_steps`.

    Args:
        options: The options of the run; the output folder does not matter.
        run: Identifies the run, since models may have changed since this process's last run.
    """
    # --plan writes samples to another folder, with the same models.
    return _load_steps(replace(options, output=Path()), run=run)


def take_steps(options: Options, *, run: str) -> "StepPipeline":
    """Return the steps of a run and drop them from the cache, so that the caller owns their models.

    Args:
        options: As for `load_steps`.
        run: As for `load_steps`.
    """
    steps = load_steps(options, run=run)
    _load_steps.cache_clear()
    return steps


@lru_cache(maxsize=1)
def _load_steps(options: Options, *, run: str) -> "StepPipeline":
    del run
    return StepPipeline(options)


class StepPipeline:
    """The steps of a run, with their models."""

    def __init__(self, options: Options) -> None:
        """Load the models that the options of a run name."""
        self.options = options
        self._quality = QualityFilter(
            options.quality,
            thresholds=options.threshold,
            scorers=load_scorers(options.classifier, options.perplexity, options.threshold),
            labels=None if options.lid_model else LANGUAGES,
        )
        self._identify = IdentifyStep(
            options.languages,
            threshold=options.language_threshold,
            model=options.lid_model,
            chars=options.lid_chars,
        )
        self._quality.check_labels(self._identify.identifier.labels)
        self._tokenize = TokenizeStep(options.tokenizer, eos=options.eos)
        self.tokenizer = self._tokenize.tokenizer
        """The tokenizer that makes the tokens."""
        # Filters with bounds run directly after the rules, since they measure too.
        filters = load_filters([parse_filter(spec) for spec in options.filter])
        self._filters = sorted(filters, key=lambda each: not each.bounds)
        self.steps: Sequence[Step] = tuple(self._in_order())
        """The steps in order; each drops or quarantines rows before the next step."""
        rules = [self._quality] if self._quality.fields else []
        measures = [self._identify, *rules, *(each for each in self._filters if each.bounds)]
        for step in measures[:-1]:
            step.measure_only = True

    def prepare(self) -> None:
        """Load the libraries and compile the kernels that the first texts need."""
        self._quality.prepare(sorted(self._identify.languages or _PREPARED))

    def _in_order(self) -> Iterator[Step]:
        options = self.options
        yield from self._filters_after(READ)
        if options.url_blocklist:
            yield BlockStep(options.url_blocklist)
        yield CleanStep()
        yield from self._filters_after(CLEAN)
        yield self._identify
        yield from self._filters_after(LANGUAGE)
        if self._quality.fields:
            yield self._quality
        yield from self._filters_after(QUALITY)
        if options.decontaminate:
            yield DecontaminateStep(options.decontaminate)
        yield from self._filters_after(CONTAMINATION)
        if options.pii == "mask":
            yield MaskStep()
        yield from self._filters_after(MASK)
        yield self._tokenize
        yield FingerprintStep(near=options.dedup == "minhash")

    def _filters_after(self, place: str) -> Iterator[UserFilterStep]:
        return (each for each in self._filters if each.after == place)

    @property
    def metrics(self) -> tuple[pa.Field, ...]:
        """The columns of metrics that the steps add to the audit table."""
        return tuple(field for step in self.steps for field in step.fields)

    @property
    def fingerprints(self) -> Mapping[str, Any]:
        """The fingerprints of files and models, which replace the options that name their paths."""
        steps = (*self.steps, self._quality)  # included even if there are no rules
        fingerprints = {name: value for step in steps for name, value in step.fingerprints.items()}
        if self._filters:  # numbered, because their order may matter
            fingerprints["filter"] = {
                f"{number}. {each.identity}": each.settings
                for number, each in enumerate(self._filters, 1)
            }
        return fingerprints

    @property
    def library_versions(self) -> Mapping[str, str]:
        """The libraries that affect bytes, with their versions."""
        return {
            name: library_version
            for step in self.steps
            for name, library_version in step.library_versions.items()
        }
