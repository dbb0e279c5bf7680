"""The job of every command, top to bottom: one Beam pipeline, on whatever runner.

    ReadSplits | ProcessSplits | FindDuplicates | WriteShards | CommitManifest

What runs where? Each stage is a plan, a Reshuffle and a ParDo. The plan is one element, in one
worker: it waits for the stage before it, if there is one (`AsList`), reads the records that its
items left, and lists the items of its own stage (plans.py). The Reshuffle breaks fusion, so that
the items spread over all workers. The ParDo does each item unless its record is there: a function
that reads files and writes files, the record last (process/, dedup/, merge/). CommitManifest is one
element again.

Which elements cross? A plan hands small items to its ParDo, for the map paths and ranges of files;
only the names of finished items go to the next plan. Options and input files are in `notes`, of
which the graph holds the work folder and the id of the job: values in memory where everything runs
in the driver, files of .work/job elsewhere.

Why do documents not cross a shuffle? Batch Beam cannot resume, and its local runners hold every
shuffled element in memory. With documents in segments, a kill costs the items that are being done,
and duplicates are found by hashes, a few bytes of each document.

What if an engine does an item twice, or starts the job again? Every plan lists the same items, each
writes the same bytes, and an item whose record is there is done. A manifest with the number of the
job means that the job is committed.

What if a worker or the driver is killed? Beam's engines retry; on one machine the driver starts
another worker process and tries the item again, and the third death ends the run. After a kill of
the driver the same command continues: a record of an earlier job counts if the files that it names
are as they were written. On an engine, cancel the old job first (docs/large.md).

Where do the steps run? Inside ProcessSplits: a worker reads a split, one range of a file or several
small files, and cleans, identifies, judges and tokenizes it batch by batch. Texts that are equal
within a segment are dropped there; FindDuplicates finds all others. transforms.py has the steps as
transforms for other pipelines, whose WriteDataset ends in the same FindDuplicates, WriteShards and
CommitManifest. For windows the commit of a firing runs these stages in a loop (write/commit.py).

When does a dataset change? Shards are written under the output folder, in the folder of their
generation; only the manifest, the last file, makes them part of the dataset.

Where are worker processes? An engine's workers do one item at a time, in `process`; the command
adds the flags that spread items over all of them on Flink and Spark (execute/cluster.py). With the
DirectRunner, Beam's FnApiRunner in the driver's process, a stage is one bundle: the ParDo collects
it, and `finish_bundle` hands the items to the processes of --workers, or does them itself.

What does the driver do? It locks the dataset, lists the input, loads the models once, in a worker
if there are any, and chooses the number of the manifest before the job (job/build.py); every
process that does items of the map loads them too. While an engine runs it, the driver shows the
progress: the page of an engine has "List", "Spread" and the work of each stage, with counters.
--append gives the job new files and a manifest to grow, --watch runs one job after another, --part
I/N ends with ProcessSplits, and --part merge checks its items and hands none out.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from pipelines.execute.figures import NAMESPACE, counter_name, figures
from pipelines.execute.item import packed, run_packed
from pipelines.execute.notes import Notes
from pipelines.execute.run import local_run, new_pipeline, reported, run_pipeline
from pipelines.execute.runner import Runner
from pipelines.execute.stage import Listed, do_here, is_done, prepare_item
from pipelines.plans import (
    KINDS,
    LOGGED,
    JobSpec,
    commit_job,
    dedup_stages,
    is_of_command,
    job_of,
    plan,
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
"""The items of each stage and the work done on them, as an engine's page shows them."""


def dataset(
    pipeline: beam.Pipeline, notes: Notes, *, steps: Sequence[str], dedup: str, grows: bool
) -> PCollection[str]:
    """Build the pipeline of the job.

    Args:
        pipeline: The Beam pipeline.
        notes: The values that plans and items share: the job's options, files and records.
        steps: The names of the steps that a batch of documents goes through.
        dedup: The value of --dedup: none, exact or minhash.
        grows: Whether the dataset has earlier generations.
    """
    segments = pipeline | ReadSplits(notes) | ProcessSplits(notes, steps)
    drops = segments | FindDuplicates(notes, dedup=dedup, grows=grows)
    shards = drops | WriteShards(notes)
    made: PCollection[str] = shards | CommitManifest(notes)
    return made


class ReadSplits(beam.PTransform[Any, PCollection[Listed]]):
    """Cuts the input into splits: ranges of large files, and packs of small ones."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes

    def expand(self, begin: Any) -> PCollection[Listed]:
        """Apply the transform."""
        return _listed(begin.pipeline, self._notes, "map")


class ProcessSplits(beam.PTransform[PCollection[Listed], PCollection[str]]):
    """Turns splits into segments: documents that passed every step, tokens, hashes, audit rows."""

    def __init__(self, notes: Notes, steps: Sequence[str]) -> None:
        super().__init__()
        self._notes = notes
        self._steps = steps

    def expand(self, splits: PCollection[Listed]) -> PCollection[str]:
        """Apply the transform."""
        work = ", ".join(["Read", *self._steps, "write segments"])
        return _done(splits, self._notes, "map", work)


class _Stages(beam.PTransform[PCollection[str], PCollection[str]]):
    """Stages that run one after another; each waits for all items of the previous one."""

    def __init__(self, notes: Notes, stages: Sequence[str]) -> None:
        super().__init__()
        self._notes = notes
        self._stages = stages

    def expand(self, before: PCollection[str]) -> PCollection[str]:
        """Apply all stages in order."""
        for stage in self._stages:
            items = _listed(before.pipeline, self._notes, stage, beam.AsList(before))
            before = _done(items, self._notes, stage, _NAMES[stage][1])
        return before


class FindDuplicates(_Stages):
    """Finds repeated texts by ranges of their hashes, and lists the documents to drop."""

    def __init__(self, notes: Notes, *, dedup: str, grows: bool = False) -> None:
        super().__init__(notes, dedup_stages(dedup, grows=grows))


class WriteShards(_Stages):
    """Merges segments by ranges of the order: one shard per range, with audit rows and rejects."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes, ("ranges", "merge"))


class CommitManifest(beam.PTransform[PCollection[str], PCollection[str]]):
    """Checks the account and writes the manifest; yields its number, or nothing."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes

    def expand(self, before: PCollection[str]) -> PCollection[str]:
        """Apply the transform."""
        committing = beam.FlatMap(_commit, beam.AsList(before), notes=self._notes)
        made: PCollection[str] = (
            before.pipeline
            | "Once" >> beam.Impulse()
            | "Write manifest" >> committing.with_output_types(str)
        )
        return made


def _listed(pipeline: beam.Pipeline, notes: Notes, stage: str, *waits: Any) -> PCollection[Listed]:
    """Add the plan of a stage: one element that waits for others and yields the stage's items."""
    what, _ = _NAMES[stage]
    planning = beam.FlatMap(_plan, *waits, notes=notes, stage=stage).with_output_types(Any)
    items: PCollection[Listed] = (
        pipeline | f"Plan {what}" >> beam.Impulse() | f"List {what}" >> planning
    )
    return items


def _done(items: PCollection[Listed], notes: Notes, stage: str, work: str) -> PCollection[str]:
    """Add the work on the items of a stage; it yields the names of finished items."""
    what, _ = _NAMES[stage]
    doing = beam.ParDo(ItemDoFn(notes, stage)).with_output_types(str)
    done: PCollection[str] = items | f"Spread {what}" >> beam.Reshuffle() | work >> doing
    return done


def _plan(_: bytes, _before: Sequence[str] = (), *, notes: Notes, stage: str) -> list[Listed]:
    with _reported(notes):
        return plan(notes, stage)


def _commit(_: bytes, _before: Sequence[str], *, notes: Notes) -> list[str]:
    with _reported(notes):
        made = commit_job(notes)
    return [] if made is None else [str(made.number)]


def _reported(notes: Notes) -> AbstractContextManager[None]:
    return reported(notes, to_driver=is_of_command(notes))


class ItemDoFn(beam.DoFn):
    """Processes items: one at a time on an engine, a whole bundle with workers in the driver."""

    def __init__(self, notes: Notes, stage: str) -> None:
        self._notes = notes
        self._stage = stage

    def setup(self) -> None:
        """Do nothing: a worker loads models when it gets its first item of a stage."""
        self._payload = b""

    def start_bundle(self) -> None:
        """Start a new bundle without items."""
        self._bundle: list[Listed] = []

    def process(self, listed: Listed) -> Iterator[str]:
        """Process an item, or keep it for the end of the bundle."""
        if local_run(self._notes):
            self._bundle.append(listed)
            return
        with _reported(self._notes):
            yield self._done(listed)

    def finish_bundle(self) -> Iterator[Any]:
        """Process the items that were kept for the end of the bundle, in the order of the plan."""
        notes, stage, local = self._notes, self._stage, local_run(self._notes)
        if not (self._bundle and local):
            return
        items = sorted(self._bundle, key=lambda listed: listed.place)
        with _reported(notes):
            do_here(notes, stage, KINDS[stage], job_of(notes), items, local.runner)
        window = beam.GlobalWindow()
        for listed in items:
            yield beam.WindowedValue(listed.item.name, window.max_timestamp(), (window,))

    def _done(self, listed: Listed) -> str:
        kind, job = KINDS[self._stage], job_of(self._notes)
        folder = self._notes.work / self._stage
        if not is_done(kind, job, listed, folder=folder):
            arguments = folder, kind.prepare, kind.argument(job)
            self._payload = self._payload or packed(prepare_item, arguments)
            run_packed(self._payload, listed.item)
        name: str = listed.item.name
        # An engine forgets the counts of an attempt that did not finish, so the attempt that
        # finishes counts the item, no matter which attempt wrote the record.
        for count, number in figures(self._stage, read_json(folder / f"{name}.json")).items():
            beam.Metrics.counter(NAMESPACE, counter_name(self._stage, count)).inc(number)
        return name


def run_job(notes: Notes, spec: JobSpec, runner: Runner, *, only_map: bool = False) -> None:
    """Run a job on the runner that the command names, showing progress.

    Args:
        notes: The values that the job's parts share.
        spec: The description of the job, which is also in the notes.
        runner: The runner, with Beam's flags and the worker processes of this machine.
        only_map: Whether the job ends with the segments.

    Raises:
        UserError: A part of the job raised it, or the engine failed.
    """
    options, grows = spec.map.options, spec.base > 0
    pipeline = new_pipeline(runner, options.output.name)
    with beam.without_cells():
        if only_map:
            _ = pipeline | ReadSplits(notes) | ProcessSplits(notes, spec.steps.names)
        else:
            dataset(pipeline, notes, steps=spec.steps.names, dedup=options.dedup, grows=grows)
    later = () if only_map else (*dedup_stages(options.dedup, grows=grows), "ranges", "merge")
    run_pipeline(pipeline, notes, runner, ("map", *later))
    for level, message in notes.get(LOGGED) or ():
        _LOG.log(level, "%s", message)
