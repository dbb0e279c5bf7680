"""Describes a chain for the driver, so that only the workers load its models."""

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
    """A chain without its models."""

    fingerprints: Mapping[str, Any]
    """Fingerprints of files and models, instead of the options that are their paths."""
    library_versions: Mapping[str, str]
    """The libraries that affect bytes, with their versions."""
    tokenizer: TokenizerEntry
    vocabulary: pa.Table
    """The vocabulary that shards.vocabulary writes."""
    steps: Sequence[str]
    """The names of the steps, in order."""
    unused_end: str
    """The piece that ends a text for the tokenizer, where another token ends documents here."""


def describe_run(arguments: tuple[Options, str]) -> StepsInfo:
    """Return the description of a run's chain; this process keeps the chain for the run's items.

    Args:
        arguments: Those of `load_steps`: options, run.

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
        steps=[step.name for step in pipeline.steps],
        unused_end=pipeline.tokenizer.unused_end,
    )


def tokenizer_entry(spec: str, tokenizer: Tokenizer) -> TokenizerEntry:
    """Return the manifest's entry of a tokenizer."""
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
