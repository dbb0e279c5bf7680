"""Turns the segments of a custom pipeline into a dataset: dedup, merge and commit as in any run."""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pipelines.commit import existing
from pipelines.commit.commit import input_entries, remove_stage_files
from pipelines.commit.ledger import Ledger
from pipelines.corpus.options import DATASET, Options, semantic_options
from pipelines.corpus.sources import Corpus
from pipelines.corpus.spec import CorpusSpec, text_columns
from pipelines.corpus.versions import segment_versions
from pipelines.execute.job_store import JobStore
from pipelines.execute.runner import preserve_log_level
from pipelines.job.append import check_base
from pipelines.job.build import next_number
from pipelines.plans import (
    FILES,
    PROCESSED,
    SPEC,
    JobFiles,
    JobSpec,
    ProcessedInput,
    delete_job_files,
    run_later_stages,
)
from pipelines.process.processor import Job, ProcessRecord, SplitRecord
from pipelines.read.input_format import InputFormat
from pipelines.segments.rows import ROWS
from pipelines.segments.segment import Segment
from pipelines.steps.description import describe_run
from pipelines.write.segment_writer import Columns, SegmentResult, WriteContext
from pipelines.write.windows import WindowPane
from shards import manifest as manifests
from shards.errors import UserError
from shards.manifest import WORK, Manifest, lock_dataset, read_current_manifest
from shards.storage.files import crc32c_of, list_file_names
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")


def _unread(*_: object) -> tuple[()]:
    """Fail: no command reads the corpus of a custom pipeline."""
    raise NotImplementedError


CORPUS = CorpusSpec(
    name="pipeline",
    about="The documents that a custom pipeline passed to WriteDataset.",
    pattern=(),
    options=Options,
    input_format=InputFormat(text_fields=("text",)),
    provenance=text_columns(),
    documents=_unread,
)
"""The corpus of datasets that custom pipelines make; no command reads it."""


@dataclass(frozen=True, kw_only=True)
class PipelineResult:
    """The segments that a pipeline wrote, and the splits that it read."""

    segments: tuple[SegmentResult, ...]
    splits: tuple[SplitRecord, ...]
    """The splits that the pipeline's ReadCorpus read."""

    @classmethod
    def of(cls, records: Iterable[SegmentResult | SplitRecord]) -> "PipelineResult":
        """Return the result that consists of these records, in any order."""
        mixed = [*records]
        segments = [record for record in mixed if isinstance(record, SegmentResult)]
        splits = [record for record in mixed if isinstance(record, SplitRecord)]
        return cls(
            segments=tuple(sorted(segments, key=_rank)),
            splits=tuple(sorted(splits, key=lambda one: (one.source, one.relative, one.start))),
        )

    def digests(self) -> dict[str, str]:
        """Return the hash of each source's rows; the hash does not depend on the order of work."""
        sums: defaultdict[str, int] = defaultdict(int)
        for one in self.segments:
            sums[one.source] = (sums[one.source] + int(one.digest, 16)) % 2**64
        return {source: f"{sums[source]:016x}" for source in sorted(sums)}


def _rank(one: SegmentResult) -> tuple[str, bool, str]:
    # Segments with documents come first: shards get the columns of their source's first segment.
    return one.source, not one.segment.documents, one.segment.stem


def job_store(context: WriteContext) -> JobStore:
    """Return the store of the job that ends a pipeline."""
    return JobStore(context.options.output / WORK, context.run)


def save_job(context: WriteContext, written: PipelineResult) -> None:
    """Save the job that makes the dataset from the result of a pipeline.

    If an engine restarts the pipeline, the job that was saved first, or the dataset that this job
    made, stays.

    Args:
        context: The shared values of the pipeline.
        written: The result of the pipeline.

    Raises:
        UserError: The dataset cannot be made; the message says why and what to do.
    """
    store, options = job_store(context), context.options
    _check_splits(written.splits)
    with lock_dataset(options.output), preserve_log_level():
        if store.get(SPEC) is not None:
            return
        records = _records(written, _versions(context))
        spec = _spec(context, written)
        spec = replace(spec, semantic={**spec.semantic, _DOCUMENTS: written.digests()}, locks=True)
        if made := _made_before(spec, records):
            spec, records = replace(spec, number=made.number), []
        else:
            check_new(options)
            _check_there(written.segments, spec.work / "map")
        store.put(FILES, JobFiles())
        store.put(PROCESSED, ProcessedInput(records=records, files=(), failed={}))
        store.put(SPEC, spec)


def clean_up(context: WriteContext) -> None:
    """Delete the intermediate files of a finished pipeline, unless they are to be kept."""
    store = job_store(context)
    if context.options.keep_segments:
        store.forget()
    else:
        delete_job_files(store, context.prefix)


def commit_pane(
    context: WriteContext, written: PipelineResult, pane: WindowPane
) -> Manifest | None:
    """Make one generation from the rows of a pane; wait while another process commits.

    A repeated attempt finds the generation of the first attempt. If the repeated attempt has
    different rows (after a restart, rows that were late may be early), its new rows become a
    further generation.

    Args:
        context: The shared values of the pipeline.
        written: The result of the pipeline for the pane.
        pane: The pane.

    Returns:
        The manifest; None if there was nothing to do.

    Raises:
        UserError: The generation cannot be made; the message says why and what to do.
    """
    output = context.options.output
    with lock_dataset(output, wait=True), preserve_log_level():
        base, folder, made = read_current_manifest(output), output / WORK / "map", None
        new = _without_committed(written, pane, context, base=base) if base else written
        if new.segments:
            _check_there(new.segments, folder)
            made = _grown(context, new, pane, base=base)
        if not context.options.keep_segments:
            _remove_segments(written, pane, folder)
    return made


def _grown(
    context: WriteContext, written: PipelineResult, pane: WindowPane, *, base: Manifest | None
) -> Manifest | None:
    """Make a generation from segments, and return the manifest; segments of other windows stay."""
    spec = replace(_spec(context, written), base=base.number if base else 0, grows=True)
    check_base(spec, base and _without_documents(base))
    store = JobStore(spec.work, uuid.uuid4().hex)
    records = _records_of_pane(written, pane, context)
    begun = [one.begun for one in written.segments]
    with store.in_memory():
        store.put(SPEC, spec)
        store.put(FILES, JobFiles())
        store.put(PROCESSED, ProcessedInput(records=records, files=(), failed={}, arrivals=begun))
        made = run_later_stages(store)
    Ledger(context.options.output).close()
    if not context.options.keep_segments:
        remove_stage_files(spec.work)
    return made


def _records_of_pane(
    written: PipelineResult, pane: WindowPane, context: WriteContext
) -> list[ProcessRecord]:
    return [
        replace(one, splits=tuple(replace(rows, relative=pane.path) for rows in one.splits))
        for one in _records(written, _versions(context))
    ]


def _spec(context: WriteContext, written: PipelineResult) -> JobSpec:
    """Return the job that makes a dataset from the result of a pipeline."""
    _check_columns(written.segments)
    options = context.options
    corpus = Corpus(__name__, options)
    sources = sorted({one.source for one in written.segments})
    job = Job(
        options=options,
        corpora=dict.fromkeys(sources, corpus),
        versions=_versions(context),
        run=context.run,
    )
    return JobSpec(
        corpus=corpus,
        job=job,
        steps=describe_run((options, context.run)),
        semantic=context_options(context),
        number=next_number(options.output),
        shards=_num_shards(written, options.shard_tokens),
    )


def check_grows(context: WriteContext) -> None:
    """Check that the output has no dataset, or one that windows can be added to.

    Raises:
        UserError: The output has a different dataset.
    """
    output = context.options.output
    base = read_current_manifest(output)
    if base is None:
        return
    advice = "Give the options that it was made with, or choose another output"
    existing.check_corpus(base, CORPUS.name, output=output, advice=advice)
    options = _without_documents(base)
    existing.check_options(options, context_options(context), output=output, advice=advice)


_DOCUMENTS = "documents"
"""The name of the semantic option that holds the hash of a bounded pipeline's rows."""


def context_options(context: WriteContext) -> dict[str, Any]:
    """Return the semantic options, which all generations of a dataset share."""
    options = context.options
    return {
        **semantic_options(options, {}, affects=(DATASET,)),
        "tokenizer": context.tokenizer,
        "dedup": options.dedup,
        "keep_dropped": options.keep_dropped,
        "metrics": [field.name for field in context.metrics],
    }


def _without_documents(base: Manifest) -> Manifest:
    options = {name: value for name, value in base.options.items() if name != _DOCUMENTS}
    return replace(base, options=options)


def _versions(context: WriteContext) -> dict[str, str]:
    return segment_versions({"tokenizer": context.engine}, {})


def _without_committed(
    written: PipelineResult, pane: WindowPane, context: WriteContext, *, base: Manifest
) -> PipelineResult:
    """Return the result without the rows that earlier attempts at the pane have committed."""
    inputs = {one for generation in base.generations for one in generation.inputs}
    of_window = {one for one in inputs if one.path.startswith(pane.window)}
    if of_window.issuperset(input_entries(_records_of_pane(written, pane, context))):
        return replace(written, segments=())
    if not of_window:
        return written
    if any(one.path == pane.path for one in of_window):
        _LOG.warning(
            "%s has other rows than in the attempt that committed it first: they are added in a "
            "further generation, in which dedup drops the rows that are already there",
            pane.path,
        )
    # Segments of an open window are only deleted by a commit, so these rows are new.
    names = list_file_names(context.options.output / WORK / "map")
    left = (one for one in written.segments if f"{one.segment.stem}.audit" in names)
    return replace(written, segments=tuple(left))


def _remove_segments(written: PipelineResult, pane: WindowPane, folder: AnyPath) -> None:
    """Delete the segments of a committed pane, and those that no later pane can need."""
    used = {one.segment.stem for one in written.segments}
    for name in list_file_names(folder):
        if name.partition(".")[0] in used or pane.outlives(name):
            (folder / name).unlink(missing_ok=True)


def check_new(options: Options) -> None:
    """Check that the output has no dataset, unless the options replace it."""
    if (options.output / manifests.NAME).exists() and not options.overwrite:
        raise UserError(
            f"{options.output} already contains a dataset: give WriteDataset another output, or "
            "overwrite=True to replace it"
        )


def _made_before(spec: JobSpec, records: Sequence[ProcessRecord]) -> Manifest | None:
    """Return the manifest that an earlier attempt at the pipeline wrote; None if there is none."""
    manifest = read_current_manifest(spec.job.options.output)
    if manifest is None or manifest.removals or manifest.corpus != spec.corpus.spec.name:
        return None
    made_of = [one for generation in manifest.generations for one in generation.inputs]
    found = manifest.options, manifest.libraries, made_of
    wanted = spec.semantic, spec.job.versions, [*input_entries(records)]
    return manifest if found == wanted else None


def _num_shards(written: PipelineResult, shard_tokens: int) -> dict[str, int]:
    """Return the number of shards of each source: a power of two, from its tokens before dedup.

    The tokens of segments cannot be used, because a segment lacks its own duplicates, and engines
    decide which rows share a segment.
    """
    tokens: defaultdict[str, int] = defaultdict(int)
    longest: defaultdict[str, int] = defaultdict(lambda: shard_tokens)
    rows: defaultdict[str, int] = defaultdict(int)
    for one in written.segments:
        tallies = [tally for tally in one.segment.tallies if tally.tokens]
        tokens[one.source] += sum(tally.tokens for tally in tallies)
        rows[one.source] += sum(tally.rows for tally in tallies)
        longest[one.source] = max(longest[one.source], one.segment.longest)
    return {
        source: min(
            1 << (-(-total // longest[source]) - 1).bit_length(),
            1 << (rows[source] - 1).bit_length(),
        )
        for source, total in tokens.items()
        if total
    }


def _records(written: PipelineResult, versions: dict[str, str]) -> list[ProcessRecord]:
    """Return the records that the stage `map` would write for these segments, one per source."""
    segments: defaultdict[str, list[Segment]] = defaultdict(list)
    for one in written.segments:
        segments[one.source].append(one.segment)
    splits: defaultdict[str, list[SplitRecord]] = defaultdict(list)
    for split in written.splits:
        splits[split.source].append(split)
    digests = written.digests()
    return [
        ProcessRecord(
            splits=tuple(
                splits[source] or [_of_rows(source, segments[source], digest=digests[source])]
            ),
            versions=versions,
            segments=tuple(segments[source]),
        )
        for source in sorted({*segments, *splits})
    ]


def _of_rows(source: str, segments: Sequence[Segment], *, digest: str) -> SplitRecord:
    """Return the split that stands for the rows of a source without files."""
    num_bytes = sum(tally.bytes for segment in segments for tally in segment.tallies)
    return SplitRecord(
        source=source,
        relative=ROWS,
        start=0,
        end=num_bytes,
        file_bytes=num_bytes,
        crc32c=crc32c_of(digest.encode()),
    )


def _check_splits(read: Sequence[SplitRecord]) -> None:
    """Check that no file was read twice; the splits of a file are neighbours."""
    for before, split in pairwise(read):
        place = split.source, split.relative, split.start
        if place == (before.source, before.relative, before.start):
            raise UserError(
                f"{split.relative} of the input {split.source!r} was read twice, so its documents "
                "would count twice: read each file with one ReadCorpus. If these are two files of "
                "the same name, name the input of each ReadCorpus: input='NAME=PATH'"
            )


def _check_there(written: Sequence[SegmentResult], folder: AnyPath) -> None:
    """Check that the files of all segments still exist."""
    names = list_file_names(folder)
    needed = (f"{one.segment.stem}.{kind}" for one in written for kind in one.segment.files)
    gone = next((name for name in needed if name not in names), None)
    if gone is not None:
        raise UserError(
            f"{folder / gone}, which this pipeline wrote, is gone: another WriteDataset with the "
            "same output has made its dataset since and deleted the file. Give each WriteDataset "
            "another output, and run this pipeline again"
        )


def _check_columns(written: Iterable[SegmentResult]) -> None:
    """Check that the documents of each source have the same columns."""
    first: dict[str, Columns] = {}
    for one in written:
        if one.columns and first.setdefault(one.source, one.columns) != one.columns:
            raise _unlike(one.source, dict(first[one.source]), dict(one.columns))


def _unlike(source: str, columns: dict[str, str], others: dict[str, str]) -> UserError:
    """Return the error for documents of one source whose columns differ, or differ in order."""
    documents, own = f"documents of the source {source!r}", "another `source`"
    if differing := columns.keys() ^ others.keys():
        return UserError(
            f"only some {documents} have a column {min(differing)!r}: the documents of a source "
            f"must have the same columns. Add it to all or none of them, or give some {own}"
        )
    if unlike := [name for name in columns if columns[name] != others[name]]:
        return UserError(
            f"the {documents} have a column {unlike[0]!r} of two types, {columns[unlike[0]]} and "
            f"{others[unlike[0]]}: use one type, or give some {own}"
        )
    return UserError(
        f"the {documents} have their columns in two orders: {', '.join(columns)}; and "
        f"{', '.join(others)}. Use one order"
    )
