"""Describes the steps of a run for the driver, so that only workers load models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpus.options import Options
from pipelines.steps.step_pipeline import load_steps
from pipelines.tokenizers.tokenizer import Tokenizer
from shards.manifest import TokenizerEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsInfo:
    """The facts about the steps of a run that the driver needs."""

    fingerprints: Mapping[str, Any]
    """The fingerprints of files and models, which replace the options that name their paths."""
    library_versions: Mapping[str, str]
    """The libraries that affect bytes, with their versions."""
    tokenizer: TokenizerEntry
    vocabulary: pa.Table
    """The table of shards.vocabulary."""
    names: Sequence[str]
    """The names of the steps, in order."""
    unused_end: str
    """The tokenizer's own end-of-text piece, if another token ends documents; else ""."""


def describe_run(arguments: tuple[Options, str]) -> StepsInfo:
    """Return the facts about a run's steps; this process keeps the steps for the run's items.

    Args:
        arguments: The options and the run, as for `load_steps`.

    Raises:
        UserError: A model cannot be loaded.
    """
    options, run = arguments
    pipeline = load_steps(options, run=run)
    return StepsInfo(
        fingerprints=pipeline.fingerprints,
        library_versions=pipeline.library_versions,
        tokenizer=tokenizer_entry(options.tokenizer, pipeline.tokenizer),
        vocabulary=pipeline.tokenizer.vocabulary(),
        names=[step.name for step in pipeline.steps],
        unused_end=pipeline.tokenizer.unused_end,
    )


def tokenizer_entry(spec: str, tokenizer: Tokenizer) -> TokenizerEntry:
    """Return the entry of a tokenizer in the manifest."""
    kind, _, name = spec.partition(":")
    return TokenizerEntry(
        spec=kind,
        name=Path(name).name,
        sha256=tokenizer.fingerprint,
        pieces=tokenizer.pieces,
        vocabulary_size=tokenizer.vocabulary_size,
        dtype=tokenizer.dtype.name,
        special=tokenizer.special,
    )
