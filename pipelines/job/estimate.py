"""Estimates a run for `--plan`, from a run over a timed sample of the input.

An ordinary job builds a dataset from parts of the input in a temporary folder. Its report for each
source is scaled by the size of the source relative to the sampled parts.
"""

import logging
import math
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from pipelines.corpus.options import Options
from pipelines.corpus.sources import Corpus, list_corpus_files
from pipelines.execute.runner import Runner, silence_beam
from pipelines.execute.workers import num_workers
from pipelines.job.build import Build
from pipelines.process.first_records import FirstFiles, check_sources
from pipelines.process.processor import Job
from pipelines.read.bounded import BoundedReader
from pipelines.read.compressed import compression
from pipelines.read.files import InputFile
from pipelines.read.formats import NEVER_CUT
from pipelines.read.reader import RecordReader
from pipelines.read.record import Damage, Record
from pipelines.read.row_groups import num_rows
from pipelines.read.split import FileSplit
from pipelines.report.columns import table
from pipelines.report.formats import byte_size, duration, percent
from pipelines.report.projection import NO_COSTS, Costs, run_costs, text_read
from pipelines.report.write import REPORT
from pipelines.steps.step_pipeline import load_steps
from shards.manifest import WORK, Manifest, sum_shards
from shards.storage.files import list_files as sizes_below
from shards.storage.files import read_json

SECONDS = 24.0
"""The approximate time for sampling all sources together, in seconds."""

PARTS = 8
"""The minimum number of splits of the largest source; a part of each split is read."""

PART_BYTES = 8 << 20
"""The maximum number of uncompressed bytes of input per part."""

MIN_SECONDS = 0.5
"""The minimum time per part, in seconds."""

START_SECONDS = 4.0
"""The seconds from the command to the first split, in which Python, Beam and models start."""

_DATASET, _FIRST, _READ = "dataset", "first", "read"
"""Folders of a sample: its dataset, and how many bytes the first checks and `map` read."""

_SECONDS = 120
"""The seconds above which times are shown in minutes, hours or days."""

_LOG = logging.getLogger("corpusmill")


class _CountingReader(BoundedReader):
    """A bounded reader that writes to a file how many stored bytes it has read."""

    def __init__(self, reader: RecordReader, *, unit: float, counts: Path, **bounds: Any) -> None:
        super().__init__(reader, **bounds)
        self._unit = unit
        self._counts = counts

    def _read(self) -> Iterator[Record | Damage]:
        yield from super()._read()
        stored = self.consumed * self._unit
        (self._counts / uuid.uuid4().hex).write_text(f"{stored} {self.split.source}")


@dataclass(frozen=True)
class SampledCorpus(Corpus):
    """A corpus that reads only a part of each split."""

    counts: Path
    """The folder for the numbers of bytes read."""
    seconds: float
    """The time limit for each part, in seconds."""

    def reader(self, split: FileSplit, *, all_columns: bool = False) -> RecordReader:
        """Return the reader of a part of a split."""
        packed = compression(split.path) is not None or split.form in NEVER_CUT
        is_table = split.form == "parquet"
        unit = split.file_bytes / max(1, num_rows(split.path)) if is_table else 1.0
        if not (packed or is_table):
            # The beginning of a file may differ from the rest.
            start = (split.start + split.end) // 2 - PART_BYTES
            split = replace(split, start=start) if start > split.start + PART_BYTES else split
        return _CountingReader(
            super().reader(split, all_columns=all_columns),
            unit=unit,
            counts=self.counts / (_FIRST if all_columns else _READ),
            seconds=self.seconds,
            units=max(1, round(PART_BYTES / unit)),
            packed=packed,
        )


@dataclass(frozen=True, kw_only=True)
class SourceEstimate:
    """The estimated sizes of a source and of the results that a run makes from the source."""

    files: int
    stored_bytes: int
    share: float
    """The share of the source's stored bytes that the sample read."""
    read: int
    """The number of documents read."""
    kept: int
    """The number of documents kept; only duplicates within the sample are accounted for."""
    left_out: Mapping[str, int]
    """The number of documents left out, by reason."""
    rejects: int
    """The number of unreadable records among those left out."""
    costs: Costs

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        report: Mapping[str, Any],
        files: Sequence[InputFile],
        *,
        share: float,
    ) -> "SourceEstimate":
        """Estimate the results for a source from the report of a run over a share of the source."""
        name = files[0].source
        account = report["accounting"][name]
        left_out = {**account["dropped"], **account["quarantined"]}
        costs = run_costs(manifest, report, source=name)
        # A run also reads the records that --sample leaves out.
        costs = replace(costs, map_seconds=report["cpu_seconds"][name]) if costs else NO_COSTS
        return cls(
            files=len(files),
            stored_bytes=_bytes(files),
            share=share,
            read=round(account["read"] / share),
            kept=round(account["kept"] / share),
            left_out={reason: round(number / share) for reason, number in left_out.items()},
            rejects=round(sum(account["quarantined"].values()) / share),
            costs=costs.scaled(1 / share),
        )


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimated cost of a run."""

    sources: Mapping[str, SourceEstimate]
    workers: int
    shards: int
    segment_bytes: int
    other_bytes: int
    """The bytes of the dataset's audit, rejects and signatures: all files except the shards."""

    @property
    def costs(self) -> Costs:
        """The costs of all sources."""
        return reduce(add, (source.costs for source in self.sources.values()))

    @property
    def seconds(self) -> float:
        """The seconds of the whole run, if all workers are always busy."""
        return START_SECONDS + self.costs.cpu_seconds / self.workers

    @property
    def documents(self) -> int:
        """The number of documents kept."""
        return sum(source.kept for source in self.sources.values())

    @property
    def disk_bytes(self) -> int:
        """The maximum total size, in bytes, of all files that exist at the same time."""
        return self.segment_bytes + self.costs.dataset_bytes + self.other_bytes


def estimate_run(module: str, options: Options, *, seconds: float = SECONDS) -> Estimate:
    """Estimate a run; nothing is written to the output.

    Args:
        module: The module that holds the corpus as CORPUS.
        options: Complete options, as `completed` returns them.
        seconds: The approximate time for sampling.

    Raises:
        UserError: The input cannot be read, or an option is not valid.
    """
    listing, corpora = list_corpus_files(module, options)
    # The sample allows any share of rejects, so that the estimate can report it. First records are
    # checked as before a run.
    check_sources(
        FirstFiles(job=Job(options=options, corpora=corpora, versions={}), files=listing.files)
    )
    by_source = {name: [file for file in listing.files if file.source == name] for name in corpora}
    chosen = {name: _spread(each) for name, each in by_source.items()}
    with tempfile.TemporaryDirectory(prefix="corpusmill-plan-") as name:
        folder = Path(name)
        for kind in (_FIRST, _READ):
            (folder / kind).mkdir()
        sample = _sampling(chosen, folder, seconds=seconds)
        manifest = _build(
            sample(Corpus(module, options)),
            {source: sample(corpus) for source, corpus in corpora.items()},
            [file for each in chosen.values() for file in each],
        )
        share = {
            name: min(1.0, stored / _bytes(by_source[name]))
            for name, stored in _bytes_read(folder).items()
        }
        return _projected(manifest, folder / _DATASET, by_source, share=share, options=options)


def _spread(files: Sequence[InputFile]) -> list[InputFile]:
    """Return PARTS files, or more if they are small, spread evenly over `files`."""
    size = max(1, _bytes(files) // len(files))
    number = min(len(files), max(PARTS, math.ceil(PARTS * PART_BYTES / size)))
    return [files[(2 * index + 1) * len(files) // (2 * number)] for index in range(number)]


def _sampling(
    chosen: Mapping[str, Sequence[InputFile]], folder: Path, *, seconds: float
) -> Callable[[Corpus], SampledCorpus]:
    """Return a function that limits a corpus to parts of chosen files."""
    split_bytes = max(PART_BYTES, max(map(_bytes, chosen.values())) // PARTS)
    parts = sum(-(-file.bytes // split_bytes) for files in chosen.values() for file in files)

    def sampled(corpus: Corpus) -> SampledCorpus:
        options = replace(
            corpus.options,
            output=folder / _DATASET,
            split_bytes=split_bytes,
            shards=1,
            max_reject_rate=1.0,
            keep_segments=True,
            overwrite=False,
            beam_args=(),
        )
        each = max(MIN_SECONDS, seconds / max(parts, 1))
        return SampledCorpus(corpus.module, options, counts=folder, seconds=each)

    return sampled


def _build(
    corpus: SampledCorpus, corpora: Mapping[str, Corpus], files: Sequence[InputFile]
) -> Manifest:
    """Build the dataset of a sample in this process, and log only warnings."""
    silence_beam()
    load_steps(corpus.options, run="").prepare()  # so that only the work is timed, not loading
    level = _LOG.level
    _LOG.setLevel(logging.WARNING)
    try:
        with Runner((), num_workers=0) as runner:
            return Build(corpus, corpora, files=files, runner=runner).make()
    finally:
        _LOG.setLevel(level)


def _bytes_read(folder: Path) -> dict[str, float]:
    """Return the stored bytes that the sample read, by source."""
    read: dict[str, float] = {}
    for path in sorted((folder / _READ).iterdir()):
        stored, _, source = path.read_text().partition(" ")
        read[source] = read.get(source, 0.0) + float(stored)
    return read


def _projected(
    manifest: Manifest,
    dataset: Path,
    files: Mapping[str, Sequence[InputFile]],
    *,
    share: Mapping[str, float],
    options: Options,
) -> Estimate:
    """Estimate a run from the dataset of a share of each source."""
    report = read_json(dataset / REPORT)
    sources = {
        name: SourceEstimate.of(manifest, report, files[name], share=share[name])
        for name in files
        if share.get(name)
    }
    sizes = sizes_below(dataset)
    segments, generation = (
        sum(
            size
            for path, size in sizes.items()
            if path.startswith(f"{folder}/") and not path.endswith(".json")
        )
        for folder in (f"{WORK}/map", manifest.generations[0].name)
    )
    read = text_read(report)
    times = sum(source.costs.text_bytes for source in sources.values()) / max(read, 1)
    return Estimate(
        sources=sources,
        workers=max(1, num_workers(options.workers, work_bytes=sum(map(_bytes, files.values())))),
        shards=sum(
            options.shards or _num_shards(source.costs.tokens, options.shard_tokens)
            for source in sources.values()
        ),
        segment_bytes=round(segments * times),
        other_bytes=round((generation - sum_shards(manifest.shards()).bytes) * times),
    )


def _num_shards(tokens: int, most: int) -> int:
    """Return the number of shards, a power of two, that keeps a shard within `most` tokens."""
    return 1 << max(0, math.ceil(math.log2(max(tokens, 1) / most)))


def _bytes(files: Sequence[InputFile]) -> int:
    return sum(file.bytes for file in files)


def estimate_lines(estimate: Estimate, options: Options) -> Iterator[str]:
    """Yield the lines that `--plan` prints for a run with these options."""
    head = ("", "files", "bytes", "sampled", "documents", "kept", "tokens", "left out")
    yield from table([head, *(_row(*named) for named in estimate.sources.items())], left=(0, 7))
    costs = estimate.costs
    steps = {**costs.map_seconds, "dedup and merge": costs.later_seconds}
    shown = (f"{name} {_time(seconds)}" for name, seconds in steps.items())
    yield ""
    yield f"CPU time     {', '.join(shown)}"
    yield (f"wall time    {_time(estimate.seconds)} on {estimate.workers} workers like this one")
    yield (
        f"disk         segments {byte_size(estimate.segment_bytes)}, shards "
        f"{byte_size(costs.dataset_bytes)} in {estimate.shards:,}, audit, rejects, signatures "
        f"{byte_size(estimate.other_bytes)}; at once {byte_size(estimate.disk_bytes)}"
    )
    rejects = sum(source.rejects for source in estimate.sources.values())
    share = rejects / max(1, sum(source.read for source in estimate.sources.values()))
    if share > options.max_reject_rate:
        yield ""
        yield (
            f"{100 * share:.2g} % of the sample cannot be read, more than --max-reject-rate "
            f"{options.max_reject_rate:g} allows"
        )


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < _SECONDS else duration(seconds / 3600)


def _row(name: str, source: SourceEstimate) -> tuple[str, ...]:
    most = Counter(source.left_out).most_common(3)
    return (
        name,
        f"{source.files:,}",
        byte_size(source.stored_bytes),
        percent(source.share, 1),
        f"{source.read:,}",
        f"{source.kept:,}",
        f"{source.costs.tokens:,}",
        ", ".join(f"{reason} {percent(number, source.read)}" for reason, number in most),
    )
