"""From the segments of a pipeline to a dataset: dedup, merge and commit as in any run."""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pipelines.commit import existing
from pipelines.commit.commit import forget_stages, input_entries
from pipelines.commit.ledger import Ledger
from pipelines.corpus.options import DATASET, Options, semantic_options
from pipelines.corpus.sources import Corpus
from pipelines.corpus.spec import CorpusSpec, text_columns
from pipelines.corpus.versions import segment_versions
from pipelines.execute.notes import Notes
from pipelines.execute.runner import level_kept
from pipelines.job.append import check_base
from pipelines.job.build import next_number
from pipelines.plans import (
    FILES,
    MAPPED,
    SPEC,
    JobFiles,
    JobSpec,
    Mapped,
    forget_job,
    run_stages,
)
from pipelines.process.processor import Job, ProcessRecord, SplitRecord
from pipelines.read.input_format import InputFormat
from pipelines.segments.rows import ROWS
from pipelines.segments.segment import Segment
from pipelines.steps.description import describe_run
from pipelines.write.collect import Collected, Columns, Sink
from pipelines.write.windows import Firing
from shards import manifest as manifests
from shards.errors import UserError
from shards.manifest import WORK, Manifest, lock_dataset, read_current_manifest
from shards.storage.files import crc32c_of, list_file_names
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")


def _unread(*_: object) -> tuple[()]:
    """Stand for the function that makes documents: no command reads for a pipeline."""
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
"""The corpus of a dataset that a pipeline made: a name for it, and nothing to read."""


@dataclass(frozen=True, kw_only=True)
class PipelineResult:
    """All that a pipeline wrote."""

    segments: tuple[Collected, ...]
    splits: tuple[SplitRecord, ...]
    """The splits that it read from corpora."""

    @classmethod
    def of(cls, records: Iterable[Collected | SplitRecord]) -> "PipelineResult":
        """Return the result for records in any order, which does not affect it."""
        mixed = [*records]
        segments = [record for record in mixed if isinstance(record, Collected)]
        splits = [record for record in mixed if isinstance(record, SplitRecord)]
        return cls(
            segments=tuple(sorted(segments, key=_rank)),
            splits=tuple(sorted(splits, key=lambda one: (one.source, one.relative, one.start))),
        )

    def digests(self) -> dict[str, str]:
        """Return the hash of each source's rows: the same however they were spread."""
        sums: defaultdict[str, int] = defaultdict(int)
        for one in self.segments:
            sums[one.source] = (sums[one.source] + int(one.digest, 16)) % 2**64
        return {source: f"{sums[source]:016x}" for source in sorted(sums)}


def _rank(one: Collected) -> tuple[str, bool, str]:
    # Those with documents first: the columns of a source's shards are those of its first segment.
    return one.source, not one.segment.documents, one.segment.stem


def notes_of(sink: Sink) -> Notes:
    """Return the values that the last stages of a pipeline share."""
    return Notes(sink.options.output / WORK, sink.run)


def note(sink: Sink, written: PipelineResult) -> None:
    """Note the job that makes the dataset of all that a pipeline wrote.

    An engine that restarts a pipeline notes it again: then the first note stays, or the dataset
    that it has led to.

    Args:
        sink: Of the pipeline.
        written: The result of the pipeline.

    Raises:
        UserError: It cannot be made; the message says why and what to do.
    """
    notes, options = notes_of(sink), sink.options
    _check_splits(written.splits)
    with lock_dataset(options.output), level_kept():
        if notes.get(SPEC) is not None:
            return
        records = _records(written, _versions(sink))
        spec = _spec(sink, written)
        spec = replace(spec, semantic={**spec.semantic, _DOCUMENTS: written.digests()}, locks=True)
        if made := _made_before(spec, records):
            spec, records = replace(spec, number=made.number), []
        else:
            check_new(options)
            _check_there(written.segments, spec.work / "map")
        notes.put(FILES, JobFiles())
        notes.put(MAPPED, Mapped(records=records, files=(), failed={}))
        notes.put(SPEC, spec)


def clean_up(sink: Sink) -> None:
    """Delete what a pipeline wrote for a dataset that is whole now, unless it is to stay."""
    notes = notes_of(sink)
    if sink.options.keep_segments:
        notes.forget()
    else:
        forget_job(notes, sink.prefix)


def commit_firing(sink: Sink, written: PipelineResult, firing: Firing) -> Manifest | None:
    """Make the generation of a window's rows when it fired, once.

    An attempt that is repeated finds its generation. Where it has other rows than the attempt
    before, as after a restart rows may be early that were late, what is new of them becomes a
    generation too. Another commit is waited for.

    Args:
        sink: Of the pipeline.
        written: The result of the pipeline.
        firing: Of the window.

    Returns:
        The manifest; None if there was nothing to do.

    Raises:
        UserError: It cannot be made; the message says why and what to do.
    """
    output = sink.options.output
    with lock_dataset(output, wait=True), level_kept():
        base, folder, made = read_current_manifest(output), output / WORK / "map", None
        new = _not_taken(written, firing, sink, base=base) if base else written
        if new.segments:
            _check_there(new.segments, folder)
            made = _grown(sink, new, firing, base=base)
        if not sink.options.keep_segments:
            _remove_segments(written, firing, folder)
    return made


def _grown(
    sink: Sink, written: PipelineResult, firing: Firing, *, base: Manifest | None
) -> Manifest | None:
    """Make a generation of segments; those of other windows stay."""
    spec = replace(_spec(sink, written), base=base.number if base else 0, grows=True)
    check_base(spec, base and _without_documents(base))
    notes = Notes(spec.work, uuid.uuid4().hex)
    records = _of_firing(written, firing, sink)
    begun = [one.begun for one in written.segments]
    with notes.in_memory():
        notes.put(SPEC, spec)
        notes.put(FILES, JobFiles())
        notes.put(MAPPED, Mapped(records=records, files=(), failed={}, arrivals=begun))
        made = run_stages(notes)
    Ledger(sink.options.output).close()
    if not sink.options.keep_segments:
        forget_stages(spec.work)
    return made


def _of_firing(written: PipelineResult, firing: Firing, sink: Sink) -> list[ProcessRecord]:
    return [
        replace(one, splits=tuple(replace(rows, relative=firing.path) for rows in one.splits))
        for one in _records(written, _versions(sink))
    ]


def _spec(sink: Sink, written: PipelineResult) -> JobSpec:
    """Return the job that makes a dataset of a pipeline's result."""
    _check_columns(written.segments)
    options = sink.options
    corpus = Corpus(__name__, options)
    sources = sorted({one.source for one in written.segments})
    job = Job(
        options=options,
        corpora=dict.fromkeys(sources, corpus),
        versions=_versions(sink),
        run=sink.run,
    )
    return JobSpec(
        corpus=corpus,
        map=job,
        steps=describe_run((options, sink.run)),
        semantic=sink_options(sink),
        number=next_number(options.output),
        shards=_num_shards(written, options.shard_tokens),
    )


def check_grows(sink: Sink) -> None:
    """Check that the output holds a dataset that windows can be added to, or none.

    Raises:
        UserError: It holds another.
    """
    output = sink.options.output
    base = read_current_manifest(output)
    if base is None:
        return
    advice = "Give the options that it was made with, or another output"
    existing.check_corpus(base, CORPUS.name, output=output, advice=advice)
    options = _without_documents(base)
    existing.check_options(options, sink_options(sink), output=output, advice=advice)


_DOCUMENTS = "documents"
"""The semantic option with the hash of the rows of a bounded pipeline."""


def sink_options(sink: Sink) -> dict[str, Any]:
    """Return the options that all generations of a dataset have in common."""
    options = sink.options
    return {
        **semantic_options(options, {}, affects=(DATASET,)),
        "tokenizer": sink.tokenizer,
        "dedup": options.dedup,
        "keep_dropped": options.keep_dropped,
        "metrics": [field.name for field in sink.metrics],
    }


def _without_documents(base: Manifest) -> Manifest:
    options = {name: value for name, value in base.options.items() if name != _DOCUMENTS}
    return replace(base, options=options)


def _versions(sink: Sink) -> dict[str, str]:
    return segment_versions({"tokenizer": sink.engine}, {})


def _not_taken(
    written: PipelineResult, firing: Firing, sink: Sink, *, base: Manifest
) -> PipelineResult:
    """Return the rows that no generation of the window has from earlier attempts."""
    inputs = {one for generation in base.generations for one in generation.inputs}
    of_window = {one for one in inputs if one.path.startswith(firing.window)}
    if of_window.issuperset(input_entries(_of_firing(written, firing, sink))):
        return replace(written, segments=())
    if not of_window:
        return written
    if any(one.path == firing.path for one in of_window):
        _LOG.warning(
            "%s has other rows than when an attempt before committed it: they are added in a "
            "further generation, where --dedup exact or minhash knows those that are there already",
            firing.path,
        )
    # Only a commit deletes segments of a window that is open.
    names = list_file_names(sink.options.output / WORK / "map")
    left = (one for one in written.segments if f"{one.segment.stem}.audit" in names)
    return replace(written, segments=tuple(left))


def _remove_segments(written: PipelineResult, firing: Firing, folder: AnyPath) -> None:
    """Delete the segments of a generation that is made, and those that no firing takes any more."""
    taken = {one.segment.stem for one in written.segments}
    for name in list_file_names(folder):
        if name.partition(".")[0] in taken or firing.outlives(name):
            (folder / name).unlink(missing_ok=True)


def check_new(options: Options) -> None:
    """Check that the output holds no dataset, unless it is to be replaced."""
    if (options.output / manifests.NAME).exists() and not options.overwrite:
        raise UserError(
            f"{options.output} holds a dataset already: give WriteDataset another output, or "
            "overwrite=True to replace it"
        )


def _made_before(spec: JobSpec, records: Sequence[ProcessRecord]) -> Manifest | None:
    """Return the manifest if an attempt before got that far: engines may repeat a pipeline."""
    manifest = read_current_manifest(spec.map.options.output)
    if manifest is None or manifest.removals or manifest.corpus != spec.corpus.spec.name:
        return None
    made_of = [one for generation in manifest.generations for one in generation.inputs]
    found = manifest.options, manifest.libraries, made_of
    asked = spec.semantic, spec.map.versions, [*input_entries(records)]
    return manifest if found == asked else None


def _num_shards(written: PipelineResult, shard_tokens: int) -> dict[str, int]:
    """Return the shards of each source: the least power of two, by its tokens before dedup.

    How many tokens segments hold depends on which duplicates met in one.
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
    """Return the records of a map that left these segments, one for each source."""
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
    """Return a placeholder for the split of a source without files."""
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
    """Check that no file was read twice; the splits of one are side by side."""
    for before, split in pairwise(read):
        place = split.source, split.relative, split.start
        if place == (before.source, before.relative, before.start):
            raise UserError(
                f"{split.relative} of the input {split.source!r} was read twice, and its documents "
                "would count twice: give WriteDataset one ReadCorpus for each file; for another "
                "file of the same name, give each ReadCorpus a name of its own, input='NAME=PATH'"
            )


def _check_there(written: Sequence[Collected], folder: AnyPath) -> None:
    """Check that all segments still have their files."""
    names = list_file_names(folder)
    needed = (f"{one.segment.stem}.{kind}" for one in written for kind in one.segment.files)
    gone = next((name for name in needed if name not in names), None)
    if gone is not None:
        raise UserError(
            f"{folder / gone} is gone, which this pipeline wrote: another WriteDataset with the "
            "same output has made its dataset since, and removed it. Give each an output of its "
            "own, and run this pipeline again"
        )


def _check_columns(written: Iterable[Collected]) -> None:
    """Check that all documents of a source have the same columns."""
    first: dict[str, Columns] = {}
    for one in written:
        if one.columns and first.setdefault(one.source, one.columns) != one.columns:
            raise _unlike(one.source, dict(first[one.source]), dict(one.columns))


def _unlike(source: str, columns: dict[str, str], others: dict[str, str]) -> UserError:
    """Return the error for documents of one source with other columns, or in another order."""
    documents, own = f"documents of the source {source!r}", "their own `source`"
    if differing := columns.keys() ^ others.keys():
        return UserError(
            f"some {documents} have a column {min(differing)!r} and some have not: a source's "
            f"documents have the same columns. Add it to all or none, or give them a {own}"
        )
    if unlike := [name for name in columns if columns[name] != others[name]]:
        return UserError(
            f"the {documents} have a column {unlike[0]!r} of two types, {columns[unlike[0]]} and "
            f"{others[unlike[0]]}: make it one, or give them a {own}"
        )
    return UserError(
        f"the {documents} have their columns in two orders: {', '.join(columns)}; and "
        f"{', '.join(others)}. Give all the same"
    )
