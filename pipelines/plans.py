"""The plans of a job, which list the items of each stage, and the commit at the end.

    map      processes splits of the input: each becomes segments
    dedup    finds duplicates by ranges of the hashes of texts and of MinHash bands
    known    compares documents with similar ones of earlier generations
    drops    lists the documents to drop by ranges of the order
    ranges   cuts the segments of very large corpora by ranges of the order
    merge    writes the shards of each source, and signatures for later generations

A plan is a pure function of the job and of the earlier stages' records, so every evaluation returns
the same items, even after an engine restarts the job. This module does not import Beam; pipeline.py
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
from pipelines.commit.commit import (
    StageResults,
    commit,
    input_entries,
    make_manifest,
    with_generation,
)
from pipelines.commit.empty import missing_value_warnings
from pipelines.commit.ledger import Ledger
from pipelines.commit.limits import check_kept, check_rejects, unreadable_share, unreadable_sources
from pipelines.commit.origin import given_paths
from pipelines.commit.unknown import unknown_tokens, unknown_warnings
from pipelines.corpus.languages import LANGUAGES
from pipelines.corpus.part import MERGE
from pipelines.corpus.sources import Corpus
from pipelines.dedup.items import DedupRecord, prepare_dedup
from pipelines.dedup.plan import DedupPlan, DedupResult
from pipelines.execute.job_store import JobStore
from pipelines.execute.records import complete_files
from pipelines.execute.runner import Runner
from pipelines.execute.stage import (
    LazyPlan,
    Plan,
    PlannedItem,
    Records,
    Stage,
    StageKind,
    StageSummary,
    collect_messages,
    list_items,
    run_here,
    stage_records,
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
    """The values that the plans of a job share."""

    corpus: Corpus
    """The corpus whose command runs the job."""
    job: Job
    """The values that the items of the job also share."""
    steps: StepsInfo
    semantic: Mapping[str, Any]
    """The options that determine the output bytes, with fingerprints instead of paths."""
    number: int
    """The number of the manifest to write; a manifest with this number means the job is done."""
    base: int = 0
    """The number of the manifest that the job extends; 0 for a new dataset."""
    grows: bool = False
    """Whether the job may add a generation to earlier ones, as with --append and --watch."""
    workers: int = 0
    """The number of worker processes, for report.json."""
    locks: bool = False
    """Whether the commit locks the dataset, because no process lives through the whole job."""
    shards: Mapping[str, int] = field(default_factory=dict)
    """The number of shards of each source for which the number is known before the job."""
    begun: float = field(default_factory=time.time)
    """When the job began, in seconds since 1970."""

    @property
    def work(self) -> AnyPath:
        """The folder of intermediate files."""
        return self.job.work

    @property
    def quality(self) -> QualityRules:
        """The rules of profiles and scorers; only the workers need the scorers' models."""
        options = self.job.options
        # The labels of a custom model are known only to the steps, which check them.
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
    """The inputs that cannot be read, with the reasons; the report lists these inputs."""
    first_seen: Mapping[InputFile, float] = field(default_factory=dict)
    """The time each file was first seen, in seconds since 1970, where known."""


@dataclass(frozen=True, kw_only=True)
class ProcessedInput:
    """The results of the first stage, `map`."""

    records: Sequence[ProcessRecord]
    """The items' records, in the order of file and place, except those of the files in `failed`."""
    files: Sequence[InputFile]
    """The input files that were processed."""
    failed: Mapping[InputFile, str]
    """The input files that a watch could not process, with the reasons."""
    arrivals: Sequence[float] = ()
    """Arrival times of documents, in seconds since 1970, where known."""


SPEC, FILES, PROCESSED, LOGGED = "spec", "files", "processed", "logged"
"""The store's names for a JobSpec, JobFiles, a ProcessedInput, and an engine's commit log."""

_SPLITS, _INDEX, _PLAN, _MANIFEST = "splits", "index", "plan", "manifest"
"""Further names, for a ProcessPlan, a SegmentIndex, a LazyPlan, and the job's manifest."""


def _has_files(job: Job, _: Any, record: DedupRecord | MergeRecord, _sizes: Any) -> bool:
    return complete_files(job.options.output, record.entries)


def _has_segment(job: Job, _: Any, record: RangeRecord, _sizes: Any) -> bool:
    return record.is_intact(job.work / "ranges")


_OUTPUT = attrgetter("options.output")
_DEDUP = StageKind(
    record_type=DedupRecord, prepare=prepare_dedup, argument=_OUTPUT, is_intact=_has_files
)
KINDS: Mapping[str, StageKind] = {
    "map": StageKind(record_type=ProcessRecord, prepare=prepare_splits, is_intact=is_intact),
    **dict.fromkeys(("dedup", "known", "drops"), _DEDUP),
    "ranges": StageKind(
        record_type=RangeRecord, prepare=prepare_range, argument=_OUTPUT, is_intact=_has_segment
    ),
    "merge": StageKind(
        record_type=MergeRecord, prepare=prepare_merge, argument=_OUTPUT, is_intact=_has_files
    ),
}
"""How the items of each stage are processed."""


def dedup_stages(dedup: str, *, has_previous: bool) -> tuple[str, ...]:
    """Return the stages of dedup that can have items, as far as is known before the job begins.

    Args:
        dedup: The value of --dedup: none, exact or minhash.
        has_previous: Whether the dataset has earlier generations.
    """
    if dedup == "none":
        return ()
    if dedup == "exact":
        return ("dedup", "drops")
    return ("dedup", *(("known",) if has_previous else ()), "drops")


@lru_cache(maxsize=2)
def _spec_of(store: JobStore) -> JobSpec:
    spec: JobSpec = store.get(SPEC)
    return spec


def job_of(store: JobStore) -> Job:
    """Return the values that the items of a job share."""
    return _spec_of(store).job


def is_of_command(store: JobStore) -> bool:
    """Return whether a command waits for the job; False for a custom pipeline of transforms."""
    return not _spec_of(store).locks


def _is_followed(store: JobStore, spec: JobSpec) -> bool:
    """Return whether the driver, in a separate process, logs the messages of the job's parts."""
    return not (store.is_local or spec.locks)


def plan_stage(store: JobStore, stage: str) -> list[PlannedItem]:
    """Return the items of a stage for the workers; all items of earlier stages must be done.

    Raises:
        UserError: The job cannot be continued; the message says why and what to do.
    """
    spec = _spec_of(store)
    with collect_messages(keep=_is_followed(store, spec)) as messages:
        sizes = list_files(
            spec.work / stage
        )  # for a URL, one listing instead of one request per item
        if stage == "map":
            found = Stage(stage, _plan_splits(store, spec, sizes).items)
        else:
            found = _lazy_plan(store, spec, _read_records(store)).stage(stage)
        listed = list_items(store, found, sizes, messages)
    if stage == "map" and spec.job.options.part == (MERGE,):
        return []  # every split already has its segments
    return listed


def commit_job(store: JobStore) -> Manifest | None:
    """Commit the results of the stages, unless a manifest with the job's number exists.

    Returns:
        The manifest; None if there was nothing to commit.

    Raises:
        UserError: The results cannot be committed; the message says why and what to do.
    """
    spec = _spec_of(store)
    output = spec.job.options.output
    with (
        collect_messages(keep=_is_followed(store, spec)) as messages,
        lock_dataset(output, wait=True) if spec.locks else nullcontext(),
    ):
        base = manifests.read_current_manifest(output)
        if base is not None and base.number >= spec.number:
            return base
        made = None
        index = _segment_index(store, spec)
        if index is not None:
            dedup, merged = _lazy_plan(store, spec, _read_records(store)).result()
            results = StageResults(
                records=processed_input(store).records,
                index=index,
                dedup=dedup,
                merged=merged.records,
                slots=merged.signatures,
            )
            made = _commit_results(store, spec, results, base if spec.base else None)
    if store.is_local:
        store.put(_MANIFEST, made)
    else:
        store.put(LOGGED, messages)
    return made


def delete_job_files(store: JobStore, prefix: str) -> None:
    """Delete the intermediate files of a job, but not those of other jobs with the same output.

    Args:
        store: The store of the job.
        prefix: The prefix of the names of the job's segments.
    """
    work = store.work
    names = {}
    for stage in STAGES[1:]:
        planned: StageSummary | None = store.get(stage)
        names[stage] = {*planned.weights} if planned else set()
    if (index := store.get(_INDEX)) is not None:
        names["plan"] = {index.name}
    store.forget()
    for path in list_files(work):
        folder, _, name = path.partition("/")
        is_segment = folder == "map" and name.startswith(prefix)
        if is_segment or name.partition(".")[0] in names.get(folder, ()):
            (work / path).unlink(missing_ok=True)
    if not list_files(work):
        remove_work(work)


def committed_manifest(store: JobStore) -> Manifest | None:
    """Return the manifest that a job committed; None if there was nothing to commit."""
    made: Manifest | None = store.get(_MANIFEST)
    if made is None and processed_input(store).records:
        made = manifests.read_manifest(_spec_of(store).job.options.output)
    return made


def planned_splits(store: JobStore) -> ProcessPlan:
    """Return the splits that a job processes; they must already be planned."""
    planned: ProcessPlan = store.get(_SPLITS)
    return planned


def run_later_stages(store: JobStore) -> Manifest | None:
    """Run the stages after `map` in this process, and commit the results like commit_job."""
    spec = _spec_of(store)

    def answer(stage: Stage) -> Records:
        kind = KINDS[stage.name]
        listed = list_items(store, stage, list_files(spec.work / stage.name))
        run_here(store, stage.name, kind, spec.job, listed, Runner((), num_workers=0))
        return stage_records(store, kind, stage)

    if _segment_index(store, spec) is not None:
        _lazy_plan(store, spec, answer).result()
    return commit_job(store)


def processed_input(store: JobStore) -> ProcessedInput:
    """Return the results of the stage `map`, whose items must all be done.

    Raises:
        UserError: The end of a file is missing.
    """
    found: ProcessedInput | None = store.get(PROCESSED)
    if found is not None:
        return found
    spec, inputs = _spec_of(store), store.get(FILES)
    splits = planned_splits(store)
    by_name = stage_records(store, KINDS["map"], Stage("map", splits.items))
    records = [*by_name.values()]
    failed = {**splits.failed, **failed_files(records, inputs.files)}
    records = without_files(records, {file.name for file in failed})
    if not spec.job.options.skip_unreadable:
        check_ends(records, inputs.files)
    ranked = sorted(inputs.files, key=lambda file: file.name)
    done = [file for file in ranked if file not in failed]
    arrivals = [inputs.first_seen[file] for file in done if file in inputs.first_seen]
    found = ProcessedInput(records=records, files=done, failed=failed, arrivals=arrivals)
    if store.is_local:
        store.put(PROCESSED, found)
    return found


def _plan_splits(store: JobStore, spec: JobSpec, sizes: Mapping[str, int]) -> ProcessPlan:
    splits = plan_splits(spec.job, spec.steps.fingerprints, store.get(FILES).files, there=sizes)
    if spec.job.options.part == (MERGE,):
        check_parts(spec.job, splits.items, sizes)
    store.put(_SPLITS, splits)
    return splits


def _read_records(store: JobStore) -> Callable[[Stage], Records]:
    return lambda stage: stage_records(store, KINDS[stage.name], stage)


def _lazy_plan(
    store: JobStore, spec: JobSpec, answer: Callable[[Stage], Records]
) -> LazyPlan[tuple[DedupResult, MergeResult]]:
    """Return the plan of the stages after `map`; in the driver it is evaluated once."""
    running: LazyPlan[tuple[DedupResult, MergeResult]] | None
    running = store.get(_PLAN) if store.is_local else None
    if running is None:
        running = LazyPlan(_later_stages(store, spec), answer, STAGES)
        if store.is_local:
            store.put(_PLAN, running)
    return running


def _later_stages(store: JobStore, spec: JobSpec) -> Plan[tuple[DedupResult, MergeResult]]:
    """Yield the stages after `map`, and return their results."""
    index = _segment_index(store, spec)
    if index is None:
        return DedupResult(), MergeResult()
    options = spec.job.options
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


def _segment_index(store: JobStore, spec: JobSpec) -> SegmentIndex | None:
    """Return the index of a job's segments; None if there are no segments.

    Raises:
        UserError: Too many records cannot be read, or no document is left.
    """
    if (index := store.get(_INDEX)) is None:
        found = processed_input(store)
        if not found.records:
            return None
        _check(spec, found)
        if spec.grows:
            Ledger(spec.job.options.output).start(spec.number, found.files)
        index = _make_index(spec, found.records)
        store.put(_INDEX, index)
    made: SegmentIndex = index
    return made


def _check(spec: JobSpec, found: ProcessedInput) -> None:
    """Check that few enough records are unreadable, and that a new dataset has a document.

    Raises:
        UserError: Too many records are unreadable, or no document is left; the message shows what
            the records contain.
    """
    job = spec.job
    if not job.options.watch:  # a watch continues, no matter what arrives
        most = job.options.max_reject_rate
        if unreadable_share(found.records).rate > most:
            sources = unreadable_sources(found.records)
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
    """Write the index of all segments to the file that items read, and return the index."""
    job, output = spec.job, spec.job.options.output
    grows_or_replaces = spec.base or job.options.overwrite
    current = manifests.read_current_manifest(output) if grows_or_replaces else None
    base = current if spec.base else None
    identity: dict[str, Any] = {
        "corpus": spec.corpus.spec.name,
        "options": spec.semantic,
        "inputs": to_json(input_entries(records)),
    }
    if job.options.overwrite and current and current.libraries != job.versions:
        # Different library versions write different bytes, so the new files need new names.
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


def _commit_results(
    store: JobStore, spec: JobSpec, results: StageResults, base: Manifest | None
) -> Manifest:
    """Write the manifest, and log a summary of the new data."""
    options, found = spec.job.options, processed_input(store)
    output, inputs = options.output, store.get(FILES)
    made = make_manifest(
        results,
        corpus=spec.corpus.spec.name,
        options=spec.semantic,
        tokenizer=spec.steps.tokenizer,
        vocabulary=write_vocabulary(output, spec.steps.vocabulary),
        number=spec.number,
    )
    if base is not None:
        made = with_generation(base, made)
    left_out = {**inputs.left_out, **found.failed}
    splits = (split for record in results.records for split in record.splits)
    whys = {split.name: split.why_cut for split in splits if split.cut}
    cut = {file: whys[file.name] for file in found.files if file.name in whys}
    unknown = unknown_tokens(results.records)
    quality = spec.quality
    run = {
        **_stage_figures(store, spec),
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
        *missing_value_warnings(results.records, spec.job.corpora),
        *unknown_warnings(unknown),
    ):
        _LOG.warning("%s", warning)
    return made


def _stage_figures(store: JobStore, spec: JobSpec) -> dict[str, Any]:
    """Return figures about the stages for report.json: the seconds and the numbers of items.

    A stage lasts until the next one is planned; a stage without work is not in `seconds`.
    """
    found = [(stage, store.get(stage)) for stage in STAGES]
    planned: list[tuple[str, StageSummary]] = [(stage, note) for stage, note in found if note]
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
