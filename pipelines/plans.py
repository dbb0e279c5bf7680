"""The plans of a job: the items of each stage, and the commit at the end.

    map      the splits of the input, some of which become segments at once
    dedup    ranges of the hashes of texts, and of each band of near-duplicates
    known    documents that are compared with those of earlier generations
    drops    ranges of the order: the documents to drop
    ranges   of very large corpora: segments cut by ranges of the order
    merge    the shards of each source, and signatures for later generations

A plan is a pure function of the job and of the earlier stages' records, so every evaluation returns
the same items, also after an engine restarts the job. This module does not import Beam; pipeline.py
turns the plans into a graph.
"""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any

from pipelines.commit import account
from pipelines.commit.commit import Results, commit, describe, grown, input_entries
from pipelines.commit.empty import empty_lines
from pipelines.commit.ledger import Ledger
from pipelines.commit.limits import check_kept, check_rejects, losses_of, unread_sources
from pipelines.commit.origin import given_paths
from pipelines.commit.unknown import unknown_tokens, unknown_warnings
from pipelines.corpus.languages import LANGUAGES
from pipelines.corpus.part import MERGE
from pipelines.corpus.sources import Corpus
from pipelines.dedup.items import DedupRecord, prepare_dedup
from pipelines.dedup.plan import DedupPlan, DedupResult
from pipelines.execute.notes import Notes
from pipelines.execute.records import complete_files
from pipelines.execute.runner import Runner
from pipelines.execute.stage import (
    Listed,
    Plan,
    Planned,
    Records,
    RunningPlan,
    Stage,
    StageKind,
    do_here,
    kept_messages,
    list_items,
    records_of,
)
from pipelines.merge.items import MergeRecord, prepare_merge
from pipelines.merge.plan import MergeResult, Sharding, merge
from pipelines.merge.ranges import RangeRecord, prepare_range
from pipelines.process.first_records import FirstFiles, check_first_records
from pipelines.process.plan import (
    ProcessPlan,
    check_ends,
    check_parts,
    failed_files,
    is_intact,
    plan_splits,
    without_files,
)
from pipelines.process.processor import Job, ProcessRecord, prepare_splits
from pipelines.quality import QualityRules
from pipelines.quality.selection import merge_selections, recorded_bounds
from pipelines.read.files import InputFile
from pipelines.read.listing import Listing
from pipelines.report.showcase import showcase
from pipelines.report.sums import figures
from pipelines.segments.index import PreviousGeneration, SegmentEntry, SegmentIndex
from pipelines.steps.description import StepsInfo
from pipelines.steps.filter_spec import parse_filter
from shards import manifest as manifests
from shards.maintenance.prune import remove_work
from shards.manifest import Manifest, lock_dataset
from shards.paths import FOLDERS, check_links
from shards.records import to_json
from shards.storage.files import canonical_json, list_files
from shards.storage.remote import AnyPath
from shards.vocabulary import write_vocabulary

_LOG = logging.getLogger("corpusmill")

STAGES = ("map", "dedup", "known", "drops", "ranges", "merge")
"""The names of all stages, in order; each stage has a folder of records in .work."""


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """The values that the plans of a job share; `map` contains the values that map items share."""

    corpus: Corpus
    """The corpus whose command runs the job."""
    map: Job
    steps: StepsInfo
    semantic: Mapping[str, Any]
    """The options that determine the output bytes, with fingerprints instead of paths."""
    number: int
    """Of the manifest that is made: one that has it is made already."""
    base: int = 0
    """The number of the manifest that the job extends; 0 for a new dataset."""
    grows: bool = False
    """Whether the dataset is one that grows, and the job adds a generation."""
    workers: int = 0
    locks: bool = False
    """Whether the commit locks the dataset, because no process lives through the whole job."""
    shards: Mapping[str, int] = field(default_factory=dict)
    """The number of shards by source, where it is known."""
    begun: float = field(default_factory=time.time)
    """When the job began, in seconds since 1970."""

    @property
    def work(self) -> AnyPath:
        """The folder of intermediate files."""
        return self.map.work

    @property
    def quality(self) -> QualityRules:
        """The rules of profiles and scorers; only the workers need the scorers' models."""
        options = self.map.options
        # The chain checks the labels of a custom model, because it knows them.
        labels = None if options.lid_model else LANGUAGES
        quality = QualityRules.parse(options.quality, overrides=options.threshold, labels=labels)
        return QualityRules(
            merge_selections(quality.selection, recorded_bounds(self.steps.fingerprints))
        )


@dataclass(frozen=True, kw_only=True)
class JobFiles:
    """The input files of a job."""

    files: Sequence[InputFile] = ()
    left_out: Mapping[InputFile, str] = field(default_factory=dict)
    """Inputs that cannot be read, with the reason; the report lists them."""
    first_seen: Mapping[InputFile, float] = field(default_factory=dict)
    """The time each file was first seen, in seconds since 1970, where known."""


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """The results of the map of a job."""

    records: Sequence[ProcessRecord]
    """The records of the map's items, by file and place, without files that could not be mapped."""
    files: Sequence[InputFile]
    """The input files that are mapped."""
    failed: Mapping[InputFile, str]
    """The input files that could not be mapped in a watch, with the reason."""
    arrivals: Sequence[float] = ()
    """Arrival times of documents, in seconds since 1970, where known."""


SPEC, FILES, MAPPED, LOGGED = "spec", "files", "mapped", "logged"
"""Names of notes: a JobSpec, JobFiles, a Mapped, and the commit's log messages on an engine."""

_MAPPING, _INDEX, _RUNNING, _MADE = "mapping", "index", "running", "made"
"""Names of further notes: a ProcessPlan, a SegmentIndex, a RunningPlan, the manifest."""


def _is_intact_dedup(job: Job, _: Any, record: DedupRecord, _sizes: Any) -> bool:
    return complete_files(job.options.output, (*record.signatures, *record.files))


def _is_intact_range(job: Job, _: Any, record: RangeRecord, _sizes: Any) -> bool:
    return record.is_intact(job.work / "ranges")


def _is_intact_merge(job: Job, _: Any, record: MergeRecord, _sizes: Any) -> bool:
    return complete_files(
        job.options.output, [*record.shards, *record.validation, *record.tables()]
    )


_OUTPUT = attrgetter("options.output")
_DEDUP = StageKind(
    record_type=DedupRecord, prepare=prepare_dedup, argument=_OUTPUT, is_intact=_is_intact_dedup
)
KINDS: Mapping[str, StageKind] = {
    "map": StageKind(record_type=ProcessRecord, prepare=prepare_splits, is_intact=is_intact),
    **dict.fromkeys(("dedup", "known", "drops"), _DEDUP),
    "ranges": StageKind(
        record_type=RangeRecord,
        prepare=prepare_range,
        argument=_OUTPUT,
        is_intact=_is_intact_range,
    ),
    "merge": StageKind(
        record_type=MergeRecord,
        prepare=prepare_merge,
        argument=_OUTPUT,
        is_intact=_is_intact_merge,
    ),
}
"""How the items of each stage are processed."""


def dedup_stages(dedup: str, *, grows: bool) -> tuple[str, ...]:
    """Return the stages of dedup that can have items, which is known before the job begins.

    Args:
        dedup: The value of --dedup: none, exact or minhash.
        grows: Whether the dataset has earlier generations.
    """
    if dedup == "none":
        return ()
    if dedup == "exact":
        return ("dedup", "drops")
    return ("dedup", *(("known",) if grows else ()), "drops")


@lru_cache(maxsize=2)
def _spec_of(notes: Notes) -> JobSpec:
    spec: JobSpec = notes.get(SPEC)
    return spec


def job_of(notes: Notes) -> Job:
    """Return the values that the items of a job share."""
    return _spec_of(notes).map


def is_of_command(notes: Notes) -> bool:
    """Return whether a command waits for the job, as opposed to a pipeline of transforms."""
    return not _spec_of(notes).locks


def _is_followed(notes: Notes, spec: JobSpec) -> bool:
    """Return whether a driver in another process logs the messages of the job's parts."""
    return not (notes.are_here or spec.locks)


def plan(notes: Notes, stage: str) -> list[Listed]:
    """Return the items of a stage to hand out, once all items of earlier stages are done.

    Raises:
        UserError: The job cannot be continued; the message says why and what to do.
    """
    spec = _spec_of(notes)
    with kept_messages(keep=_is_followed(notes, spec)) as messages:
        sizes = list_files(
            spec.work / stage
        )  # for a URL, one listing instead of one request per item
        if stage == "map":
            mapping = _plan_map(notes, spec, sizes)
            found = Stage(stage, mapping.items)
        else:
            found = _running(notes, spec, _answer(notes)).stage(stage)
        listed = list_items(notes, found, sizes, messages)
    if stage == "map" and spec.map.options.part == (MERGE,):
        return []  # every split is already mapped
    return listed


def commit_job(notes: Notes) -> Manifest | None:
    """Commit the results of the stages, unless a manifest with the job's number exists.

    Returns:
        The manifest; None if there was nothing to commit.

    Raises:
        UserError: The results cannot be committed; the message says why and what to do.
    """
    spec = _spec_of(notes)
    output = spec.map.options.output
    with (
        kept_messages(keep=_is_followed(notes, spec)) as messages,
        lock_dataset(output, wait=True) if spec.locks else nullcontext(),
    ):
        base = manifests.read_current_manifest(output)
        if base is not None and base.number >= spec.number:
            return base
        made = None
        index = _index(notes, spec)
        if index is not None:
            dedup, merged = _running(notes, spec, _answer(notes)).result()
            results = Results(
                records=mapped(notes).records,
                index=index,
                dedup=dedup,
                merged=merged.records,
                slots=merged.signatures,
            )
            made = _commit(notes, spec, results, base if spec.base else None)
    if notes.are_here:
        notes.put(_MADE, made)
    else:
        notes.put(LOGGED, messages)
    return made


def forget_job(notes: Notes, prefix: str) -> None:
    """Delete a job's intermediate files, but not those of other jobs with the same output.

    Args:
        notes: The notes of the job.
        prefix: The prefix of the names of the job's segments.
    """
    work = notes.work
    names = {}
    for stage in STAGES[1:]:
        planned: Planned | None = notes.get(stage)
        names[stage] = {*planned.weights} if planned else set()
    if (index := notes.get(_INDEX)) is not None:
        names["plan"] = {index.name}
    notes.forget()
    for path in list_files(work):
        folder, _, name = path.partition("/")
        is_segment = folder == "map" and name.startswith(prefix)
        if is_segment or name.partition(".")[0] in names.get(folder, ()):
            (work / path).unlink(missing_ok=True)
    if not list_files(work):
        remove_work(work)


def made_by(notes: Notes) -> Manifest | None:
    """Return the manifest that a job has committed; None if there was nothing to commit."""
    made: Manifest | None = notes.get(_MADE)
    if made is None and mapped(notes).records:
        made = manifests.read_manifest(_spec_of(notes).map.options.output)
    return made


def planned_splits(notes: Notes) -> ProcessPlan:
    """Return the splits that a job maps, once they are planned."""
    planned: ProcessPlan = notes.get(_MAPPING)
    return planned


def run_stages(notes: Notes) -> Manifest | None:
    """Run the stages after the map in this process, and commit the results like commit_job."""
    spec = _spec_of(notes)

    def answer(stage: Stage) -> Records:
        kind = KINDS[stage.name]
        listed = list_items(notes, stage, list_files(spec.work / stage.name))
        do_here(notes, stage.name, kind, spec.map, listed, Runner((), num_workers=0))
        return records_of(notes, kind, stage)

    if _index(notes, spec) is not None:
        _running(notes, spec, answer).result()
    return commit_job(notes)


def mapped(notes: Notes) -> Mapped:
    """Return the results of the map of a job.

    Raises:
        UserError: The end of a file is missing.
    """
    found: Mapped | None = notes.get(MAPPED)
    if found is not None:
        return found
    spec, inputs = _spec_of(notes), notes.get(FILES)
    mapping: ProcessPlan = notes.get(_MAPPING)
    of_items = records_of(notes, KINDS["map"], Stage("map", mapping.items))
    records = [*of_items.values()]
    failed = {**mapping.failed, **failed_files(records, inputs.files)}
    records = without_files(records, {file.name for file in failed})
    if not spec.map.options.skip_unreadable:
        check_ends(records, inputs.files)
    ranked = sorted(inputs.files, key=lambda file: file.name)
    done = [file for file in ranked if file not in failed]
    arrivals = [inputs.first_seen[file] for file in done if file in inputs.first_seen]
    found = Mapped(records=records, files=done, failed=failed, arrivals=arrivals)
    if notes.are_here:
        notes.put(MAPPED, found)
    return found


def _plan_map(notes: Notes, spec: JobSpec, sizes: Mapping[str, int]) -> ProcessPlan:
    mapping = plan_splits(spec.map, spec.steps.fingerprints, notes.get(FILES).files, there=sizes)
    if spec.map.options.part == (MERGE,):
        check_parts(spec.map, mapping.items, sizes)
    notes.put(_MAPPING, mapping)
    return mapping


def _answer(notes: Notes) -> Callable[[Stage], Records]:
    return lambda stage: records_of(notes, KINDS[stage.name], stage)


def _running(
    notes: Notes, spec: JobSpec, answer: Callable[[Stage], Records]
) -> RunningPlan[tuple[DedupResult, MergeResult]]:
    """Return the plan of the stages after the map; the driver runs each of its steps once."""
    running: RunningPlan[tuple[DedupResult, MergeResult]] | None
    running = notes.get(_RUNNING) if notes.are_here else None
    if running is None:
        running = RunningPlan(_after_map(notes, spec), answer, STAGES)
        if notes.are_here:
            notes.put(_RUNNING, running)
    return running


def _after_map(notes: Notes, spec: JobSpec) -> Plan[tuple[DedupResult, MergeResult]]:
    """Yield the stages after the map, and return their results."""
    index = _index(notes, spec)
    if index is None:
        return DedupResult(), MergeResult()
    options = spec.map.options
    dedup = yield from DedupPlan(
        index, dedup=options.dedup, threshold=options.minhash_threshold
    ).stages()
    sharding = Sharding(
        shards=options.shards,
        shard_tokens=options.shard_tokens,
        validation=options.validation,
        fixed=spec.shards,
    )
    merged = yield from merge(index, dedup, options.output, sharding)
    return dedup, merged


def _index(notes: Notes, spec: JobSpec) -> SegmentIndex | None:
    """Return the index of a job's segments; None if there are none.

    Raises:
        UserError: Too many records cannot be read, or no document is left.
    """
    if (index := notes.get(_INDEX)) is None:
        found = mapped(notes)
        if not found.records:
            return None
        _check(spec, found)
        if spec.grows:
            Ledger(spec.map.options.output).name(spec.number, found.files)
        index = _make_index(spec, found.records)
        notes.put(_INDEX, index)
    made: SegmentIndex = index
    return made


def _check(spec: JobSpec, found: Mapped) -> None:
    """Check that not too many records are unreadable, and that a new dataset has a document.

    Raises:
        UserError: Too many records are unreadable, or no document is left; the message shows what
            the records contain.
    """
    job = spec.map
    if not job.options.watch:  # a watch continues whatever arrives
        most = job.options.max_reject_rate
        if losses_of(found.records).rate > most:
            sources = unread_sources(found.records)
            own = [file for file in found.files if file.source in sources]
            check_first_records(
                FirstFiles(job=job, files=own), call=lambda function, files: function(files)
            )
        check_rejects(
            found.records, found.files, corpora=job.corpora, most=most, folder=job.work / "map"
        )
    if not spec.grows:
        quality = spec.quality
        rules = [rule for each in quality.describe() for rule in quality.rules(each)]
        check_kept(found.records, rules)


def _make_index(spec: JobSpec, records: Sequence[ProcessRecord]) -> SegmentIndex:
    """Return the list of all segments, after writing it to the file that items read."""
    job, output = spec.map, spec.map.options.output
    grows_or_replaces = spec.base or job.options.overwrite
    current = manifests.read_current_manifest(output) if grows_or_replaces else None
    base = current if spec.base else None
    identity: dict[str, Any] = {
        "corpus": spec.corpus.spec.name,
        "options": spec.semantic,
        "inputs": to_json(input_entries(records)),
    }
    if job.options.overwrite and current and current.libraries != job.versions:
        # Other libraries write other bytes, which must not get the names of the old files.
        identity["libraries"] = job.versions
    earlier = () if base is None else base.generations
    if earlier:
        identity["earlier"] = [generation.fingerprint for generation in earlier]
    if base is not None and base.libraries != job.versions:
        identity["libraries"] = job.versions
    fingerprint = hashlib.sha256(canonical_json(identity)).hexdigest()
    index = SegmentIndex(
        generation=f"g{len(earlier) + 1:04}-{fingerprint[:8]}",
        fingerprint=fingerprint,
        dtype=spec.steps.tokenizer.dtype,
        texts=job.options.keep_dropped,
        segments=tuple(
            SegmentEntry.of(segment, record.source)
            for record in records
            for segment in record.segments
        ),
        previous=tuple(
            PreviousGeneration.of(generation, dedup=job.options.dedup) for generation in earlier
        ),
    )
    folders = (*index.sources, *FOLDERS)
    check_links(output, [f"{index.generation}/{name}/-" for name in folders], files=False)
    index.save(job.work)
    return index


def _commit(notes: Notes, spec: JobSpec, results: Results, base: Manifest | None) -> Manifest:
    """Write the manifest, and log a summary of the new data."""
    options, found = spec.map.options, mapped(notes)
    output, inputs = options.output, notes.get(FILES)
    made = describe(
        results,
        corpus=spec.corpus.spec.name,
        options=spec.semantic,
        tokenizer=spec.steps.tokenizer,
        vocabulary=write_vocabulary(output, spec.steps.vocabulary),
        number=spec.number,
    )
    if base is not None:
        made = grown(base, made)
    left_out = {**inputs.left_out, **found.failed}
    splits = (split for record in results.records for split in record.splits)
    whys = {split.name: split.why_cut for split in splits if split.cut}
    cut = {file: whys[file.name] for file in found.files if file.name in whys}
    unknown = unknown_tokens(results.records)
    quality = spec.quality
    run = {
        **_stage_figures(notes, spec),
        "workers": spec.workers,
        "input_MB": sum(file.bytes for file in found.files) / 1e6,
        "dedup": results.dedup.figures,
        "given": given_paths(options, spec.steps.fingerprints),
        "left_out": _listed(left_out),
        "cut": _listed(cut),
        **figures(
            results.records,
            results.merged,
            quality=quality,
            filters=[parse_filter(text).name for text in options.filter],
        ),
        "unknown_tokens": unknown,
        "examples": showcase(results.index, results.merged, output, quality=quality),
    }
    commit(output, made, inputs=found.files, run=run, arrivals=found.arrivals)
    lines = account.closing_lines(
        made.generations[-1].accounting,
        made,
        output,
        left_out=Counter(file.source for file in left_out),
        cut=Listing(files=[], refused=cut),
        unknown=unknown,
    )
    for line in lines:
        _LOG.info("%s", line)
    if options.keep_dropped and (again := account.erased_again(results.merged)):
        _LOG.info(
            "dropped documents whose text was erased from this dataset: %s; dropped/ has no copy "
            "of them",
            f"{again:,}",
        )
    for warning in (
        *empty_lines(results.records, spec.map.corpora),
        *unknown_warnings(unknown),
    ):
        _LOG.warning("%s", warning)
    return made


def _stage_figures(notes: Notes, spec: JobSpec) -> dict[str, Any]:
    """Return the stages' part of report.json: seconds of each and of all, and their items.

    A stage lasts until the next one is planned; a stage without work has no seconds.
    """
    found = [(stage, notes.get(stage)) for stage in STAGES]
    planned: list[tuple[str, Planned]] = [(stage, note) for stage, note in found if note]
    ends = [*(note.started for _, note in planned[1:]), time.time()]
    return {
        "seconds": {
            stage: round(end - note.started, 1)
            for (stage, note), end in zip(planned, ends, strict=True)
            if len(note.weights) > note.finished
        },
        "elapsed": round(time.time() - spec.begun, 1),
        "stages": {
            stage: {"all": len(note.weights), "finished_before": note.finished}
            for stage, note in planned
            if note.weights
        },
    }


def _listed(files_: Mapping[InputFile, str]) -> list[dict[str, str]]:
    return [
        {"source": file.source, "path": file.relative, "from": file.path, "why": why}
        for file, why in files_.items()
    ]
