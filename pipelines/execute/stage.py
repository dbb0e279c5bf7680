"""A stage of a job: items that run in parallel, in any order, and write one record each.

Each evaluation of a plan lists all items of a stage, as a pure function of the records of earlier
stages. An item is skipped if its record exists: <work>/<stage>/<item.name>.json. A record of this
job counts as soon as it exists, since an engine that loses a machine hands out items again. A
record of an earlier job counts only if its files are unchanged; otherwise it is deleted.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pipelines.execute.item import RunItem, packed
from pipelines.execute.job_store import JobStore
from pipelines.execute.progress import StageProgress, log_finished
from pipelines.execute.records import finished_record, read_record
from pipelines.execute.runner import Runner
from shards.records import seal
from shards.storage.files import write_json
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map, forget_sizes

_LOG = logging.getLogger("corpusmill")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Stage:
    """All items of a stage, as a plan yields them."""

    name: str
    items: Sequence[Any]
    """Small picklable dataclasses whose `name` is a hash of everything that determines their
    output."""


Records = Mapping[str, Any]
"""The records of a stage, by the names of its items."""

Plan = Generator[Stage, Records, Result]
"""A plan yields stages one after another, receives the records of each, and returns a result."""


@dataclass(frozen=True, kw_only=True)
class StageKind:
    """Describes how the items of a stage are run."""

    record_type: type
    prepare: Callable[[Any], Callable[[Any], Any]]
    """Returns the function that runs an item and returns its record."""
    argument: Callable[[Any], Any] = lambda job: job
    """Returns the part of a job's shared values that `prepare` receives."""
    is_intact: Callable[[Any, Any, Any, Mapping[str, int] | None], bool]
    """Returns whether the files named by a record of an earlier job are intact: is_intact(job,
    item, record, sizes), where `sizes` maps all files in the stage's folder to their sizes, or is
    None."""


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """An item that a plan hands out."""

    place: int
    """The index of the item in its stage."""
    item: Any
    has_record: bool
    """Whether the item had a record when it was listed, possibly that of an earlier job."""


@dataclass(frozen=True, kw_only=True)
class StageSummary:
    """Figures about a planned stage for the driver and report.json."""

    weights: Mapping[str, int]
    """The weight of each item in the progress line, by name: bytes of input, or 1."""
    finished: int
    """The number of items that earlier jobs have finished."""
    started: float
    """When the stage was planned, in seconds since 1970."""
    messages: Sequence[tuple[int, str]] = ()
    """The log messages of a plan that ran in an engine's worker: levels and texts."""


def list_items(
    store: JobStore,
    stage: Stage,
    sizes: Mapping[str, int],
    messages: Sequence[tuple[int, str]] = (),
) -> list[PlannedItem]:
    """Return the items of a stage to hand out, and store a summary of the stage.

    A job that an engine restarts lists the items again; the first summary stays.

    Args:
        store: The shared values of the job.
        stage: The stage with its items.
        sizes: The sizes of all files in the folder of the stage, by name.
        messages: The log messages of the plan.
    """
    listed = [
        PlannedItem(place, item, f"{item.name}.json" in sizes)
        for place, item in enumerate(stage.items)
    ]
    if store.is_local:
        store.put(_sizes_of(stage.name), sizes)
    if store.get(stage.name) is None:
        planned = StageSummary(
            weights={item.name: getattr(item, "size", 1) for item in stage.items},
            finished=sum(one.has_record for one in listed),
            started=time.time(),
            messages=tuple(messages),
        )
        store.put(stage.name, planned)
    return listed


def is_done(
    kind: StageKind,
    job: Any,
    listed: PlannedItem,
    *,
    folder: AnyPath,
    sizes: Mapping[str, int] | None = None,
) -> bool:
    """Return whether an item is done; if its files are damaged, delete its record.

    Args:
        kind: The kind of the item's stage.
        job: The values that all items share.
        listed: The item.
        folder: The folder of the item's record.
        sizes: The sizes of all files in the folder by name; None queries each file.
    """
    if not listed.has_record:
        return False
    path = folder / f"{listed.item.name}.json"
    record = finished_record(kind.record_type, path)
    if record is not None and kind.is_intact(job, listed.item, record, sizes):
        return True
    path.unlink(missing_ok=True)
    return False


def run_here(
    store: JobStore,
    stage: str,
    kind: StageKind,
    job: Any,
    listed: Sequence[PlannedItem],
    runner: Runner,
) -> None:
    """Run all items of a stage on this machine, showing progress.

    Args:
        store: The shared values of the job.
        stage: The name of the stage.
        kind: The kind of the stage, which describes how its items are run.
        job: The values that all items share.
        listed: All items of the stage.
        runner: The runner with the worker processes.
    """
    folder = store.work / stage
    sizes = store.get(_sizes_of(stage))
    done = concurrent_map(
        lambda one: is_done(kind, job, one, folder=folder, sizes=sizes), listed, where=folder
    )
    todo = [one.item for one, finished in zip(listed, done, strict=True) if not finished]
    planned = store.get(stage)
    store.put(stage, replace(planned, finished=len(listed) - len(todo)))
    if len(todo) < len(listed):
        log_finished(stage, len(listed) - len(todo), len(listed))
    if todo:
        weights = {folder / f"{item.name}.json": planned.weights[item.name] for item in todo}
        with StageProgress(stage, weights):
            runner.run(todo, packed(prepare_item, (folder, kind.prepare, kind.argument(job))))


def prepare_item(arguments: tuple[AnyPath, Callable[[Any], Callable[[Any], Any]], Any]) -> RunItem:
    """Return a function that runs an item and writes its record last, unless the record exists.

    Args:
        arguments: The folder of the stage's records, the `prepare` function of its kind, and the
            argument of `prepare`.
    """
    folder, prepare, argument = arguments
    forget_sizes()
    run_item = prepare(argument)

    def run_unless_done(item: Any) -> None:
        path = folder / f"{item.name}.json"
        if not path.exists():
            write_json(path, seal(run_item(item)))

    return run_unless_done


def stage_records(store: JobStore, kind: StageKind, stage: Stage) -> Records:
    """Return the records of a stage whose items are all done; each record is read once per job."""
    name = f"{stage.name}-records"
    records: Records | None = store.get(name)
    if records is None:
        folder = store.work / stage.name
        names = [item.name for item in stage.items]
        read: list[Any] = concurrent_map(
            lambda one: read_record(kind.record_type, folder / f"{one}.json"), names, where=folder
        )
        records = dict(zip(names, read, strict=True))
        store.put(name, records)
    return records


class LazyPlan(Generic[Result]):
    """A plan that is evaluated only as far as its stages are requested."""

    def __init__(
        self, plan: Plan[Result], read_records: Callable[[Stage], Records], order: Sequence[str]
    ) -> None:
        """Prepare to evaluate a plan.

        Args:
            plan: The plan.
            read_records: A function that returns the records of a stage whose items are done.
            order: The names of all stages that a plan can have.
        """
        self._plan = plan
        self._read_records = read_records
        self._order = order
        self._stage: Stage | None = None
        self._results: list[Result] = []

    def stage(self, name: str) -> Stage:
        """Return the stage with this name; if the plan has none, return a stage without items."""
        at = self._order.index(name)
        while not self._results and (self._stage is None or self._place(self._stage) < at):
            self._continue()
        found = self._stage
        return found if found is not None and found.name == name else Stage(name, ())

    def result(self) -> Result:
        """Return the result of the plan; all of its stages must be done."""
        while not self._results:
            self._continue()
        return self._results[0]

    def _place(self, stage: Stage) -> int:
        return self._order.index(stage.name)

    def _continue(self) -> None:
        records = None if self._stage is None else self._read_records(self._stage)
        try:
            self._stage = self._plan.send(records)  # type: ignore[arg-type]  # None begins
        except StopIteration as end:
            self._stage = None
            self._results.append(end.value)


@contextmanager
def collect_messages(*, keep: bool) -> Iterator[list[tuple[int, str]]]:
    """Yield a list that collects the log messages of the block, as levels and texts.

    Args:
        keep: Whether to collect messages instead of logging them, as in a worker of an engine,
            whose log nobody reads.
    """
    kept: list[tuple[int, str]] = []
    if not keep:
        yield kept
        return
    handler = _Keeping(kept)
    before = _LOG.level, _LOG.propagate
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False  # a worker may be a thread of the driver, which logs the messages later
    try:
        yield kept
    finally:
        _LOG.removeHandler(handler)
        _LOG.setLevel(before[0])
        _LOG.propagate = before[1]


class _Keeping(logging.Handler):
    def __init__(self, kept: list[tuple[int, str]]) -> None:
        super().__init__(logging.INFO)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append((record.levelno, record.getMessage()))


def _sizes_of(stage: str) -> str:
    return f"{stage}-sizes"
