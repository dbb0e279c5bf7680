"""`--plan`: the estimate of a run, told without running it."""

import resource
from collections.abc import Sequence
from pathlib import Path

from pipelines.corpus.options import Options
from pipelines.corpus.sources import match_corpora
from pipelines.engine.workers import num_workers
from pipelines.inputs.split import Split
from pipelines.map.mapper import Job, versions
from pipelines.map.stages import Chain
from pipelines.planning.estimate import IDLE_BYTES, Estimate, estimate
from pipelines.planning.sample import SECONDS, Sampled, sample
from pipelines.planning.sizes import extent, scaled
from pipelines.planning.table import lines
from pipelines.readers.reading import check_head, splits
from shards.storage.remote import RemotePath


def plan(module: str, options: Options) -> str:
    """Return the text that `--plan` prints; nothing is written to the output.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Options with nothing left open, as `completed` returns them.

    Raises:
        UserError: The input cannot be read, or an option does not fit.
    """
    found, sampled = planned(module, options)
    shares = {source: each.share for source, each in sampled.items()}
    return "\n".join(lines(found, options, shares=shares))


def planned(
    module: str, options: Options, *, seconds: float = SECONDS
) -> tuple[Estimate, dict[str, Sampled]]:
    """Return the estimate of a run and the samples that it rests on, by source.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Options with nothing left open.
        seconds: How long to sample, about.
    """
    files, corpora = match_corpora(module, options)
    cut: dict[str, list[Split]] = {source: [] for source in corpora}
    for file in files:
        reading = corpora[file.source].reading
        check_head(file, reading)
        cut[file.source] += splits(file, reading, split_bytes=options.split_bytes)
    chain = Chain(options)
    job = Job(options=options, corpora=corpora, versions=versions(chain, corpora))
    sampled = sample(corpora, cut, job=job, seconds=seconds)
    sources = {source: scaled(each, cut[source]) for source, each in sampled.items()}
    found = estimate(
        extent(sources, options, token_bytes=chain.tokenizer.dtype.itemsize),
        workers=max(1, num_workers(options.workers, work_bytes=sum(file.bytes for file in files))),
        split=_longest(cut),
        model_bytes=max(0.0, _resident_bytes() - IDLE_BYTES),
        remote=isinstance(options.output, RemotePath),
    )
    return found, sampled


def _longest(cut: dict[str, list[Split]]) -> Split:
    every: Sequence[Split] = [split for found in cut.values() for split in found]
    return max(every, key=lambda split: len(split.path) + len(split.relative))


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
