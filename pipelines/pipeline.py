"""Builds the job that every command runs: one Beam pipeline, which is the same on every runner.

    ReadSplits | ProcessSplits | FindDuplicates | WriteShards | CommitManifest

What runs where? Each stage consists of a plan, a Reshuffle and a ParDo. The plan is one element,
which one worker processes: it waits for the previous stage (`AsList`), reads the records of that
stage's items, and lists the items of its own stage (plans.py). The Reshuffle breaks fusion, so that
the items spread over all workers. The ParDo runs each item whose record does not exist yet. An item
reads files and writes files, its record last (process/, dedup/, merge/). CommitManifest is one
element again.

Which elements pass through Beam? A plan hands small items to its ParDo, such as paths and ranges of
files for `map`; the next plan only gets the names of finished items. Options and input files are in
the job's store; the graph holds the work folder and the identifier of the job. The store keeps
values in memory if everything runs in the driver, otherwise in files of .work/job.

Why do documents not cross a shuffle? Batch Beam cannot resume, and its local runners hold every
shuffled element in memory. Since documents are in segments, a kill only costs the unfinished items,
and duplicates are found by hashes, which have a few bytes per document.

What if an engine runs an item twice, or starts the job again? Every plan lists the same items, each
item writes the same bytes, and an item whose record exists is done. If a manifest with the number
of the job exists, the job has been committed.

What if a worker or the driver is killed? Beam's engines retry. On one machine the driver starts
another worker process and tries the item again; the third death ends the run. If the driver is
killed, the same command resumes the job: a record of an earlier job counts if the files that it
names are unchanged. On an engine, cancel the old job first (docs/large.md).

Where do the steps run? They run inside ProcessSplits: a worker reads a split, which is a range of a
file or several small files, and cleans, identifies, judges and tokenizes its texts batch by batch.
The worker drops texts that are repeated within a file; FindDuplicates finds all other duplicates.
transforms.py offers the steps as transforms for custom pipelines, whose WriteDataset ends in the
same FindDuplicates, WriteShards and CommitManifest. If the input is windowed, each pane is
committed by these stages in one process (write/commit.py).

When does a dataset change? Shards are written under the output folder, in the folder of their
generation. Only the manifest, which is written last, makes them part of the dataset.

Where do worker processes run? An engine's workers run one item at a time, in `process`; the command
adds the flags that spread items over all of them on Flink and Spark (execute/cluster.py). With the
DirectRunner, which is Beam's FnApiRunner in the driver's process, a stage is one bundle: the ParDo
collects its items, and `finish_bundle` hands them to the processes of --workers, or runs them in
the driver.

What does the driver do? It locks the dataset, lists the input, loads the models once (in a worker,
if there are workers), and chooses the number of the manifest before the job (job/build.py); every
process that runs items of `map` loads the models too. While an engine runs the job, the driver
shows the progress. The engine's page has "List …", "Spread …" and the work of each stage, with
counters. --append gives the job new files and a manifest to extend, --watch runs one job after
another, --part I/N ends with ProcessSplits, and --part merge checks the items of `map` and runs
none of them.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from pipelines.execute.counters import NAMESPACE, counter_name, item_counts
from pipelines.execute.item import packed, run_packed
from pipelines.execute.job_store import JobStore
from pipelines.execute.run import local_run, new_pipeline, report_errors, run_pipeline
from pipelines.execute.runner import Runner
from pipelines.execute.stage import PlannedItem, is_done, prepare_item, run_here
from pipelines.plans import (
    KINDS,
    LOGGED,
    JobSpec,
    commit_job,
    dedup_stages,
    is_of_command,
    job_of,
    plan_stage,
)
from shards.storage.files import read_json

_LOG = logging.getLogger("corpusmill")

_NAMES = {
    "map": ("splits", ""),  # the steps show how splits are processed
    "dedup": ("ranges of hashes", "Compare hashes"),
    "known": ("candidates", "Compare with earlier generations"),
    "drops": ("ranges of duplicates", "List duplicates"),
    "ranges": ("segments to cut", "Cut segments"),
    "merge": ("shards", "Merge shards"),
}
"""The names of each stage's items and of the work on them, as an engine's page shows them."""


def build_graph(
    pipeline: beam.Pipeline,
    store: JobStore,
    *,
    steps: Sequence[str],
    dedup: str,
    has_previous: bool,
) -> PCollection[str]:
    """Build the pipeline of the job.

    Args:
        pipeline: The Beam pipeline.
        store: The shared values of the job: options, files and records.
        steps: The names of the steps that a batch of documents goes through.
        dedup: The value of --dedup: none, exact or minhash.
        has_previous: Whether the dataset has earlier generations.
    """
    segments = pipeline | ReadSplits(store) | ProcessSplits(store, steps)
    drops = segments | FindDuplicates(store, dedup=dedup, has_previous=has_previous)
    shards = drops | WriteShards(store)
    made: PCollection[str] = shards | CommitManifest(store)
    return made


class ReadSplits(beam.PTransform[Any, PCollection[PlannedItem]]):
    """Cuts the input into splits: ranges of large files, and packs of small files."""

    def __init__(self, store: JobStore) -> None:
        super().__init__()
        self._store = store

    def expand(self, begin: Any) -> PCollection[PlannedItem]:
        """Apply the transform."""
        return _listed(begin.pipeline, self._store, "map")


class ProcessSplits(beam.PTransform[PCollection[PlannedItem], PCollection[str]]):
    """Turns splits into segments: audit rows, and the kept documents with tokens and hashes."""

    def __init__(self, store: JobStore, steps: Sequence[str]) -> None:
        super().__init__()
        self._store = store
        self._steps = steps

    def expand(self, splits: PCollection[PlannedItem]) -> PCollection[str]:
        """Apply the transform."""
        work = ", ".join(["Read", *self._steps, "write segments"])
        return _done(splits, self._store, "map", work)


class _Stages(beam.PTransform[PCollection[str], PCollection[str]]):
    """Stages that run one after another; each waits for all items of the previous one."""

    def __init__(self, store: JobStore, stages: Sequence[str]) -> None:
        super().__init__()
        self._store = store
        self._stages = stages

    def expand(self, before: PCollection[str]) -> PCollection[str]:
        """Apply all stages in order."""
        for stage in self._stages:
            items = _listed(before.pipeline, self._store, stage, beam.AsList(before))
            before = _done(items, self._store, stage, _NAMES[stage][1])
        return before


class FindDuplicates(_Stages):
    """Finds repeated texts by ranges of their hashes, and lists the documents to drop."""

    def __init__(self, store: JobStore, *, dedup: str, has_previous: bool = False) -> None:
        super().__init__(store, dedup_stages(dedup, has_previous=has_previous))


class WriteShards(_Stages):
    """Merges segments into shards, one per range of the order, with audit rows and rejects."""

    def __init__(self, store: JobStore) -> None:
        super().__init__(store, ("ranges", "merge"))


class CommitManifest(beam.PTransform[PCollection[str], PCollection[str]]):
    """Checks the account and writes the manifest; yields the manifest's number, if there is one."""

    def __init__(self, store: JobStore) -> None:
        super().__init__()
        self._store = store

    def expand(self, before: PCollection[str]) -> PCollection[str]:
        """Apply the transform."""
        committing = beam.FlatMap(_commit_element, beam.AsList(before), store=self._store)
        made: PCollection[str] = (
            before.pipeline
            | "Once" >> beam.Impulse()
            | "Write manifest" >> committing.with_output_types(str)
        )
        return made


def _listed(
    pipeline: beam.Pipeline, store: JobStore, stage: str, *waits: Any
) -> PCollection[PlannedItem]:
    """Add the plan of a stage: an element that waits for `waits`, then yields the stage's items."""
    what, _ = _NAMES[stage]
    planning = beam.FlatMap(_plan, *waits, store=store, stage=stage).with_output_types(Any)
    items: PCollection[PlannedItem] = (
        pipeline | f"Plan {what}" >> beam.Impulse() | f"List {what}" >> planning
    )
    return items


def _done(
    items: PCollection[PlannedItem], store: JobStore, stage: str, work: str
) -> PCollection[str]:
    """Add the work on the items of a stage, which yields the names of finished items."""
    what, _ = _NAMES[stage]
    doing = beam.ParDo(ItemDoFn(store, stage)).with_output_types(str)
    done: PCollection[str] = items | f"Spread {what}" >> beam.Reshuffle() | work >> doing
    return done


def _plan(
    _: bytes, _before: Sequence[str] = (), *, store: JobStore, stage: str
) -> list[PlannedItem]:
    with _report_errors(store):
        return plan_stage(store, stage)


def _commit_element(_: bytes, _before: Sequence[str], *, store: JobStore) -> list[str]:
    with _report_errors(store):
        made = commit_job(store)
    return [] if made is None else [str(made.number)]


def _report_errors(store: JobStore) -> AbstractContextManager[None]:
    return report_errors(store, to_driver=is_of_command(store))


class ItemDoFn(beam.DoFn):
    """Runs items: one at a time on an engine, but a whole bundle at once in the driver."""

    def __init__(self, store: JobStore, stage: str) -> None:
        self._store = store
        self._stage = stage

    def setup(self) -> None:
        """Do nothing: a worker loads models when it gets its first item of a stage."""
        self._payload = b""

    def start_bundle(self) -> None:
        """Start a new, empty bundle."""
        self._bundle: list[PlannedItem] = []

    def process(self, listed: PlannedItem) -> Iterator[str]:
        """Run an item, or keep it for the end of the bundle."""
        if local_run(self._store):
            self._bundle.append(listed)
            return
        with _report_errors(self._store):
            yield self._done(listed)

    def finish_bundle(self) -> Iterator[Any]:
        """Run the items that were kept for the end of the bundle, in the order of the plan."""
        store, stage, local = self._store, self._stage, local_run(self._store)
        if not (self._bundle and local):
            return
        items = sorted(self._bundle, key=lambda listed: listed.place)
        with _report_errors(store):
            run_here(store, stage, KINDS[stage], job_of(store), items, local.runner)
        window = beam.GlobalWindow()
        for listed in items:
            yield beam.WindowedValue(listed.item.name, window.max_timestamp(), (window,))

    def _done(self, listed: PlannedItem) -> str:
        kind, job = KINDS[self._stage], job_of(self._store)
        folder = self._store.work / self._stage
        if not is_done(kind, job, listed, folder=folder):
            arguments = folder, kind.prepare, kind.argument(job)
            self._payload = self._payload or packed(prepare_item, arguments)
            run_packed(self._payload, listed.item)
        name: str = listed.item.name
        # An engine forgets the counts of an attempt that did not finish, so the attempt that
        # finishes counts the item, no matter which attempt wrote the record.
        for count, number in item_counts(self._stage, read_json(folder / f"{name}.json")).items():
            beam.Metrics.counter(NAMESPACE, counter_name(self._stage, count)).inc(number)
        return name


def run_job(store: JobStore, spec: JobSpec, runner: Runner, *, only_segments: bool = False) -> None:
    """Run a job on a runner, showing progress.

    Args:
        store: The shared values of the job.
        spec: The values that the job's plans share, which are also in the store.
        runner: The runner, with Beam's flags and the worker processes of this machine.
        only_segments: Whether the job ends when the segments are written.

    Raises:
        UserError: A part of the job raised this error, or the engine failed.
    """
    options, has_previous = spec.job.options, spec.base > 0
    pipeline = new_pipeline(runner, options.output.name)
    with beam.without_cells():
        if only_segments:
            _ = pipeline | ReadSplits(store) | ProcessSplits(store, spec.steps.names)
        else:
            build_graph(
                pipeline,
                store,
                steps=spec.steps.names,
                dedup=options.dedup,
                has_previous=has_previous,
            )
    later = (
        ()
        if only_segments
        else (*dedup_stages(options.dedup, has_previous=has_previous), "ranges", "merge")
    )
    run_pipeline(pipeline, store, runner, ("map", *later))
    for level, message in store.get(LOGGED) or ():
        _LOG.log(level, "%s", message)
