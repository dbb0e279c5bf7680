"""The chain of steps that every batch of a run goes through; those in brackets are optional.

    [block] ─▶ clean ─▶ langid ─▶ [quality] ─▶ [decontaminate] ─▶ [mask] ─▶ tokenize ─▶ fingerprint

It is made of the run's options, once in each process. Custom filters follow the steps
that they name, or where those would be.
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
"""Languages whose words are prepared for where all languages are kept."""


def load_steps(options: Options, *, run: str) -> "StepPipeline":
    """Return the chain of a run, which a process loads once, until one takes it.

    Args:
        options: The options of the run; where its output is does not matter.
        run: Identifies the run: models may have changed since the last one of this process.
    """
    # --plan samples into a folder of its own, with the models that it has described.
    return _load_steps(replace(options, output=Path()), run=run)


def take_steps(options: Options, *, run: str) -> "StepPipeline":
    """Return the chain of a run, and keep it no longer: its models go when the caller lets it go.

    Args:
        options: The same as for `load_steps`.
        run: The same as for `load_steps`.
    """
    chain = load_steps(options, run=run)
    _load_steps.cache_clear()
    return chain


@lru_cache(maxsize=1)
def _load_steps(options: Options, *, run: str) -> "StepPipeline":
    del run
    return StepPipeline(options)


class StepPipeline:
    """The steps of a run with their models."""

    def __init__(self, options: Options) -> None:
        """Load the models that the options of a run name."""
        self.options = options
        self.judge = QualityFilter(
            options.quality,
            thresholds=options.threshold,
            scorers=load_scorers(options.classifier, options.perplexity, options.threshold),
            labels=None if options.lid_model else LANGUAGES,
        )
        self.identify = IdentifyStep(
            options.languages,
            threshold=options.language_threshold,
            model=options.lid_model,
            chars=options.lid_chars,
        )
        self.judge.check_labels(self.identify.identifier.labels)
        self._tokenize = TokenizeStep(options.tokenizer, eos=options.eos)
        self.tokenizer = self._tokenize.tokenizer
        """Which tokenizer makes the tokens."""
        self._own = load_filters([parse_filter(spec) for spec in options.filter])
        self._own.sort(
            key=lambda own: not own.bounds
        )  # filters that only measure run right after the rules
        self.steps: Sequence[Step] = tuple(self._in_order())
        """In order; each drops or quarantines before the next one works."""
        judging = [self.judge] if self.judge.fields else []
        measures = [self.identify, *judging, *(own for own in self._own if own.bounds)]
        for step in measures[:-1]:
            step.measure_only = True

    def prepare(self) -> None:
        """Load and compile what else is loaded and compiled for the first texts."""
        self.judge.prepare(sorted(self.identify.languages or _PREPARED))

    def _in_order(self) -> Iterator[Step]:
        options = self.options
        yield from self._own_after(READ)
        if options.url_blocklist:
            yield BlockStep(options.url_blocklist)
        yield CleanStep()
        yield from self._own_after(CLEAN)
        yield self.identify
        yield from self._own_after(LANGUAGE)
        if self.judge.fields:
            yield self.judge
        yield from self._own_after(QUALITY)
        if options.decontaminate:
            yield DecontaminateStep(options.decontaminate)
        yield from self._own_after(CONTAMINATION)
        if options.pii == "mask":
            yield MaskStep()
        yield from self._own_after(MASK)
        yield self._tokenize
        yield FingerprintStep(near=options.dedup == "minhash")

    def _own_after(self, place: str) -> Iterator[UserFilterStep]:
        return (own for own in self._own if own.after == place)

    @property
    def metrics(self) -> tuple[pa.Field, ...]:
        """The columns that the steps add to the audit table."""
        return tuple(field for step in self.steps for field in step.fields)

    @property
    def fingerprints(self) -> Mapping[str, Any]:
        """Fingerprints of files and models, instead of the options that are their paths."""
        steps = (*self.steps, self.judge)  # its fingerprints count even where there are no rules
        fingerprints = {name: fact for step in steps for name, fact in step.fingerprints.items()}
        if self._own:  # numbered: their order may matter
            own = {
                f"{number}. {step.identity}": step.fact for number, step in enumerate(self._own, 1)
            }
            fingerprints["filter"] = own
        return fingerprints

    @property
    def library_versions(self) -> Mapping[str, str]:
        """The libraries that affect bytes, with their versions."""
        return {
            name: library_version
            for step in self.steps
            for name, library_version in step.library_versions.items()
        }
