"""The job of every command, top to bottom: one Beam pipeline, on whatever runner.

    ReadSplits | ProcessSplits | FindDuplicates | WriteShards | CommitManifest

What runs where? Each stage is a plan, a Reshuffle and a ParDo. The plan is one element that waits
for the stage before it (`AsList`), reads the records that its items left, and lists the items of
its own stage (plans.py). The ParDo does them, unless their records are there: a function of an item
that reads files and writes files, the record last (process/, dedup/, merge/). Only the names of
items cross from stage to stage.

Why do documents not cross a shuffle? Batch Beam cannot resume, and its local runners hold every
shuffled element in memory. With documents in segments, a kill costs the items under way, and
duplicates are found by hashes, a few bytes of each document.

Where do the steps run? Inside ProcessSplits: a worker reads a split and cleans, identifies, judges
and tokenizes it batch by batch. As transforms of your own pipelines they are in transforms.py,
whose WriteDataset ends in the same FindDuplicates, WriteShards and CommitManifest.

Where are worker processes? On an engine its workers do an item in `process`. With the DirectRunner,
Beam's FnApiRunner in the driver's process, the ParDo collects its bundle, and `finish_bundle` hands
the items to the processes of --workers, or does them itself.
"""

import base64
import logging
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from pipelines.execute.failure import one_line
from pipelines.execute.figures import NAMESPACE, counter_name, figures
from pipelines.execute.jobs import named_options, named_runner
from pipelines.execute.loopback import report_errors_once
from pipelines.execute.notes import Notes
from pipelines.execute.progress import follow
from pipelines.execute.runner import Runner
from pipelines.execute.stage import Listed, do_here, is_done, prepare_item
from pipelines.execute.task import packed, run_packed
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
from shards.errors import DamageError, UserError
from shards.storage.files import read_json

_LOG = logging.getLogger("corpusmill")

_TITLES = {
    "dedup": "Compare hashes",
    "known": "Compare with earlier generations",
    "drops": "List duplicates",
    "slots": "Write signatures",
    "ranges": "Cut segments",
    "merge": "Merge shards",
}
"""What an engine's page calls the steps that do the items of stages."""


def dataset(
    pipeline: beam.Pipeline, notes: Notes, *, steps: Sequence[str], dedup: str, grows: bool
) -> PCollection[str]:
    """Put the job together.

    Args:
        pipeline: Of Beam.
        notes: What plans and items share: the job's options, files and records.
        steps: The names of the steps that a batch of documents goes through.
        dedup: none, exact or minhash, as --dedup says.
        grows: Whether there are earlier generations.
    """
    segments = pipeline | ReadSplits(notes) | ProcessSplits(notes, steps)
    drops = segments | FindDuplicates(notes, dedup=dedup, grows=grows)
    shards = drops | WriteShards(notes)
    made: PCollection[str] = shards | CommitManifest(notes)
    return made


class PlanItems(beam.PTransform[Any, PCollection[Listed]]):
    """Lists the items of a stage, once those of the stage before are done."""

    def __init__(self, notes: Notes, stage: str) -> None:
        super().__init__()
        self._notes = notes
        self._stage = stage

    def expand(self, before: Any) -> PCollection[Listed]:
        """Wire it."""
        waits = () if isinstance(before, beam.PBegin) else (beam.AsList(before),)
        listed: PCollection[Listed] = (
            before.pipeline
            | "Once" >> beam.Impulse()
            | "List items"
            >> beam.FlatMap(_plan, *waits, notes=self._notes, stage=self._stage).with_output_types(
                Any
            )
        )
        return listed


class DoItems(beam.PTransform[PCollection[Listed], PCollection[str]]):
    """Does the items of a stage, and gives the names of those that are done."""

    def __init__(self, notes: Notes, stage: str, title: str) -> None:
        super().__init__()
        self._notes = notes
        self._stage = stage
        self._title = title

    def expand(self, items: PCollection[Listed]) -> PCollection[str]:
        """Wire it."""
        done: PCollection[str] = (
            items
            | "Spread over workers" >> beam.Reshuffle()
            | self._title >> beam.ParDo(ItemDoFn(self._notes, self._stage)).with_output_types(str)
        )
        return done


class ReadSplits(PlanItems):
    """Cuts the input into splits: ranges of large files, and packs of small ones."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes, "map")


class ProcessSplits(DoItems):
    """Makes segments of splits: documents that passed every step, tokens, hashes, audit."""

    def __init__(self, notes: Notes, steps: Sequence[str]) -> None:
        super().__init__(notes, "map", ", ".join(["Read", *steps, "write segments"]))


class _Stages(beam.PTransform[PCollection[str], PCollection[str]]):
    """Stages that follow each other."""

    def __init__(self, notes: Notes, stages: Sequence[str]) -> None:
        super().__init__()
        self._notes = notes
        self._stages = stages

    def expand(self, before: PCollection[str]) -> PCollection[str]:
        """Wire them."""
        for stage in self._stages:
            title = _TITLES[stage]
            before = (
                before
                | f"Plan: {title}" >> PlanItems(self._notes, stage)
                | title >> DoItems(self._notes, stage, title)
            )
        return before


class FindDuplicates(_Stages):
    """Finds texts that repeat, by ranges of their hashes, and lists what to drop."""

    def __init__(self, notes: Notes, *, dedup: str, grows: bool = False) -> None:
        super().__init__(notes, dedup_stages(dedup, grows=grows))


class WriteShards(_Stages):
    """Merges segments by ranges of the order: a shard each, with audit and rejects."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes, ("ranges", "merge"))


class CommitManifest(beam.PTransform[PCollection[str], PCollection[str]]):
    """Checks the account and writes the manifest; gives its number, or nothing."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes

    def expand(self, before: PCollection[str]) -> PCollection[str]:
        """Wire it."""
        made: PCollection[str] = (
            before.pipeline
            | "Once" >> beam.Impulse()
            | "Write manifest"
            >> beam.FlatMap(_commit, beam.AsList(before), notes=self._notes).with_output_types(str)
        )
        return made


def _plan(_: bytes, _before: Sequence[str] = (), *, notes: Notes, stage: str) -> list[Listed]:
    with reported(notes):
        return plan(notes, stage)


def _commit(_: bytes, _before: Sequence[str], *, notes: Notes) -> list[str]:
    with reported(notes):
        made = commit_job(notes)
    return [] if made is None else [str(made.number)]


class ItemDoFn(beam.DoFn):
    """Does items: on an engine each at once; in the driver all of a bundle, by its workers."""

    def __init__(self, notes: Notes, stage: str) -> None:
        self._notes = notes
        self._stage = stage

    def setup(self) -> None:
        """Prepare nothing yet: a worker loads models for its first item of a stage."""
        self._payload = b""

    def start_bundle(self) -> None:
        """Begin."""
        self._bundle: list[Listed] = []

    def process(self, listed: Listed) -> Iterator[str]:
        """Do an item, or leave it to the end of the bundle."""
        if _local(self._notes):
            self._bundle.append(listed)
            return
        with reported(self._notes):
            yield self._done(listed)

    def finish_bundle(self) -> Iterator[Any]:
        """Do what was left, in the order of the plan."""
        if not self._bundle:
            return
        items = sorted(self._bundle, key=lambda listed: listed.place)
        notes, stage = self._notes, self._stage
        with reported(notes):
            do_here(notes, stage, KINDS[stage], job_of(notes), items, notes.get(_LOCAL).runner)
        for listed in items:
            yield beam.WindowedValue(
                listed.item.name, beam.GlobalWindow().max_timestamp(), (beam.GlobalWindow(),)
            )

    def _done(self, listed: Listed) -> str:
        kind, job = KINDS[self._stage], job_of(self._notes)
        folder = self._notes.work / self._stage
        if not is_done(kind, job, listed, folder=folder):
            arguments = folder, kind.prepare, kind.argument(job)
            self._payload = self._payload or packed(prepare_item, arguments)
            run_packed(self._payload, listed.item)
        name: str = listed.item.name
        # An engine forgets what an attempt counted that did not come to its end, so the attempt
        # that does counts, whichever one wrote the record.
        for count, number in figures(self._stage, read_json(folder / f"{name}.json")).items():
            beam.Metrics.counter(NAMESPACE, counter_name(self._stage, count)).inc(number)
        return name


class _Local:
    """A job whose parts run in this process."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.error: BaseException | None = None


_LOCAL = "local"
"""The name of a note: a _Local, where all parts of a job run in this process."""


def _local(notes: Notes) -> _Local | None:
    local: _Local | None = notes.get(_LOCAL) if notes.are_here else None
    return local


_ENCODED = re.compile(r"\[corpusmill ([A-Za-z0-9+/=]+)\]")
_TYPES: dict[str, type[UserError]] = {"UserError": UserError, "DamageError": DamageError}


@contextmanager
def reported(notes: Notes) -> Iterator[None]:
    """Carry an error of the block to the driver, whatever Beam makes of it on the way.

    In the driver's process it is kept. From an engine's worker a UserError comes as text, since an
    engine keeps only that.
    """
    try:
        yield
    except BaseException as error:
        if local := _local(notes):
            local.error = error
        elif isinstance(error, UserError) and is_of_command(notes):
            kind = "DamageError" if isinstance(error, DamageError) else "UserError"
            text = base64.b64encode(f"{kind} {error}".encode()).decode()
            raise RuntimeError(f"{error} [corpusmill {text}]") from error
        raise


def run_job(notes: Notes, spec: JobSpec, runner: Runner, *, only_map: bool = False) -> None:
    """Run a job on the runner that the command names, showing progress.

    Args:
        notes: What its parts share.
        spec: The job, which the notes have.
        runner: Has the flags for Beam, and the worker processes of this machine.
        only_map: Whether the job ends with the segments.

    Raises:
        UserError: A part of it raised it, or the engine failed.
    """
    job_options = spec.map.options
    options = named_options(runner.flags, job_options.output.name)
    pipeline = beam.Pipeline(
        runner=beam.FnApiRunner() if runner.local else named_runner(options), options=options
    )
    with beam.without_cells():
        if only_map:
            _ = pipeline | ReadSplits(notes) | ProcessSplits(notes, spec.chain.steps)
        else:
            dataset(
                pipeline,
                notes,
                steps=spec.chain.steps,
                dedup=job_options.dedup,
                grows=spec.base > 0,
            )
    if runner.local:
        _run_here(pipeline, notes, runner)
    else:
        dedup = dedup_stages(job_options.dedup, grows=spec.base > 0)
        stages = ("map",) if only_map else ("map", *dedup, "ranges", "merge")
        with follow(notes, stages):
            _run_on_engine(pipeline)
        for level, message in notes.get(LOGGED) or ():
            _LOG.log(level, "%s", message)


def _run_here(pipeline: beam.Pipeline, notes: Notes, runner: Runner) -> None:
    local = _Local(runner)
    notes.put(_LOCAL, local)
    try:
        with _interrupts_kept(local):
            pipeline.run().wait_until_finish()
    except Exception:
        if local.error is None:
            raise
        raise local.error from None


def _run_on_engine(pipeline: beam.Pipeline) -> None:
    result = None
    report_errors_once()  # Prism's workers may be threads of this process
    try:
        result = pipeline.run()
        result.wait_until_finish()
    except KeyboardInterrupt:
        if result is not None:
            result.cancel()
        raise
    except Exception as error:
        message = _ENCODED.search(str(error))
        if message is not None:
            kind, _, text = base64.b64decode(message[1]).decode().partition(" ")
            raise _TYPES[kind](text) from error
        raise UserError(
            f"the runner failed: {one_line(error, 1000)}. Look at its own log. Finished work is "
            "kept; the same command continues from it"
        ) from error


@contextmanager
def _interrupts_kept(local: _Local) -> Iterator[None]:
    """Keep a Ctrl-C of the block: of one in a DoFn Beam makes a RuntimeError."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # a watch ends in its own way
        yield
        return

    def interrupted(*_: int | FrameType | None) -> None:
        local.error = KeyboardInterrupt()
        raise local.error

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
