"""`--plan`: the estimate of a run without the run."""

import logging
import resource
import uuid
from pathlib import Path

from pipelines.corpus.options import Options
from pipelines.corpus.sources import match_corpora
from pipelines.execute.workers import num_workers
from pipelines.map.chain import load_chain
from pipelines.map.first_records import FirstFiles, check_sources
from pipelines.map.mapper import Job, segment_versions
from pipelines.map.packs import packs
from pipelines.planning.estimate import IDLE_BYTES, Estimate, estimate
from pipelines.planning.sample import SECONDS, sample
from pipelines.planning.sizes import run_extent
from pipelines.read.input_format import splits
from pipelines.read.split import FileSplit

_LOG = logging.getLogger("corpusmill")


def plan(module: str, options: Options, *, seconds: float = SECONDS) -> Estimate:
    """Return what a run would take; nothing is written to the output.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Complete options, as `completed` returns them.
        seconds: How long to sample, roughly.

    Raises:
        UserError: The input cannot be read, or an option does not fit.
    """
    files, corpora = match_corpora(module, options)
    chains = []
    for file in files:
        reading = corpora[file.source].reading
        reading.peek(file.path).check()
        chains.append(splits(file, reading, split_bytes=options.split_bytes))
    cut: dict[str, list[tuple[FileSplit, ...]]] = {source: [] for source in corpora}
    for pack in packs(chains, split_bytes=options.split_bytes):
        cut[pack[0].source].append(pack)
    workers = num_workers(options.workers, work_bytes=sum(file.bytes for file in files))
    run = uuid.uuid4().hex
    chain = load_chain(options, run=run)
    chain.prepare()  # what is timed is the work, not the start
    versions = segment_versions(chain.engines, corpora)
    job = Job(options=options, corpora=corpora, versions=versions, run=run)
    for warning in check_sources(FirstFiles(job=job, files=files)):
        _LOG.warning("%s", warning)
    sizes = sample(corpora, cut, job=job, seconds=seconds)
    return estimate(
        run_extent(sizes, options),
        workers=max(1, workers),
        model_bytes=max(0.0, _resident_bytes() - IDLE_BYTES),
    )


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
