"""A watch: a stream maps files as they arrive, and this process makes generations of them.

stream ─▶ notes and records in .work ─▶ due: ledger, dedup, merge ─▶ manifest ─▶ notes go

The stream and the making of a generation go on side by side. Whatever ends (a worker, the engine,
this process), everything is found again by the notes, the records and the ledger.
"""

import logging
import os
import signal
import statistics
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

from pipelines import compiled
from pipelines.corpus.options import Options
from pipelines.corpus.recipe import load_recipe
from pipelines.corpus.sources import Corpus, Folders, watched_corpora
from pipelines.engine.failure import one_line
from pipelines.engine.prism import Engine
from pipelines.engine.records import finished_record
from pipelines.engine.runner import Runner, silence_beam
from pipelines.engine.stream import Job as StreamJob
from pipelines.engine.task import packed
from pipelines.engine.workers import num_workers
from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Link, Split, seamless
from pipelines.map.arrivals import (
    BACK,
    CHANGED,
    GROWING,
    WatchJob,
    prepare_arrivals,
    prepare_assignment,
    tasks_of,
)
from pipelines.map.description import try_models
from pipelines.map.mapper import MapTask, SplitRecord
from pipelines.map.notes import (
    FAILED,
    ODD,
    TAKEN,
    Control,
    Look,
    Notes,
    Odd,
    Taken,
    file_key,
    look_of,
)
from pipelines.map.phase import forget_records
from pipelines.run import existing
from pipelines.run.append import check_base, grow, read_base
from pipelines.run.build import Build
from pipelines.run.commit import clean_up
from pipelines.run.existing import seen_files
from pipelines.run.ledger import NAME as LEDGER
from pipelines.run.ledger import Ledger
from pipelines.run.ready import check_ready
from shards.errors import UserError
from shards.flags import flag_of
from shards.manifest import WORK, held
from shards.storage.address import is_url
from shards.storage.files import file_names
from shards.storage.remote import AnyPath

TOLD_EVERY = 60.0
"""Seconds between two messages about something that lasts."""

MOST_TOLD = 5
"""Files that are named at once."""

SHOWN_EVERY = 10.0
"""Seconds between two lines of progress."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""Seconds until the job is submitted again, at first and at most."""

CALM = 600.0
"""Seconds after which the end of a job is not counted with the ends before it."""

RENEWED_AFTER = 4 * 3600.0
"""Seconds after which a job is replaced by a new one: what an engine keeps of each tick (0.7 KB a
key group in Flink's memory) goes with its job."""

FEW_TASKS = 100
"""Of more that wait, a job is not renewed: they would be handed out by both."""

LONGEST_DRAIN = 600.0
"""Seconds that files in flight are waited for at the end."""

LOST_AFTER = 600.0
"""Seconds after which a file that is gone counts as lost though no map of it has failed: one that
began before has ended by then."""

_ADVICE = (
    "Put back what was replaced, and the watch goes on; for a dataset with the new one, give "
    "another --output"
)

QUIET = 15.0
"""Seconds at the end after which no worker begins a file: a look every five, and some to spare."""

_LARGE = 1 << 40
_LOG = logging.getLogger("corpusmill")


def watch(module: str, options: Options, *, flags: Sequence[str] = ()) -> None:
    """Follow the inputs until the user or --until ends it; then what has arrived is committed.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: Complete options, as `completed` returns them.
        flags: Flags for Beam.

    Raises:
        UserError: The watch cannot begin; the message says why and what to do.
    """
    silence_beam()
    with Engine(flags) as engine:
        check_ready(options, corpus=load_recipe(module).name, flags=())
        folders, corpora = watched_corpora(module, options)
        folders.look()
        _watch(Corpus(module, options), corpora, folders=folders, engine=engine)


def _watch(
    corpus: Corpus, corpora: Mapping[str, Corpus], *, folders: Folders, engine: Engine
) -> None:
    options = corpus.options
    with held(options.output):
        maker = Maker(corpus, corpora)
        base = read_base(options.output)
        with maker.build(native=compiled.available()) as run:
            check_base(run, base)
            watched = Watch(run, maker, folders=folders, engine=engine)
        with _told_to_stop() as stop:
            watched.run(stop)


@contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set; a second one ends this process at once."""
    stop = threading.Event()

    def told(*_: int | FrameType | None) -> None:
        if stop.is_set():
            # Not by an exception: a commit may be under way, and the lock must be held until then.
            os.write(2, b"ended at once: what was taken is known to the next watch\n")
            os._exit(130)
        stop.set()

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Maker:
    """Makes runs on this machine's workers, one for each generation."""

    corpus: Corpus
    corpora: Mapping[str, Corpus]

    @contextmanager
    def build(self, *, native: bool = False) -> Iterator[Build]:
        """Yield a run; its workers end with the block.

        Args:
            native: Whether its job, which the stream maps by, uses native loops. The run of a
                generation finds everything mapped, and need not load them.
        """
        workers = num_workers(self.corpus.options.workers, work_bytes=_LARGE)
        with Runner((), num_workers=workers, preload=("pipelines.run.build",)) as runner:
            runner.call(try_models, self.corpus.options)
            yield Build(
                self.corpus,
                self.corpora,
                files=(),
                runner=runner,
                compiled=native,
            )


@dataclass
class Arrived:
    """A file that is taken and not yet committed."""

    file: InputFile
    at: float
    """When it was first seen, in seconds since 1970."""
    waiting: set[str]
    """Names of its tasks that have no record yet."""
    names: tuple[str, ...]
    splits: tuple[Split, ...] = ()
    links: dict[str, Link] = field(default_factory=dict)
    """How its splits join up, by name of task, for those that have a record."""
    documents: int = 0
    tokens: int = 0
    gone: float = 0.0
    """When it was found to be no longer there; 0: it is."""

    @property
    def mapped(self) -> bool:
        """Whether it can be part of a generation."""
        return bool(self.names) and not self.waiting

    @property
    def whole(self) -> bool:
        """Whether nothing of it has to be read again."""
        links = [self.links[name] for name in self.names if name in self.links]
        return self.mapped and len(links) == len(self.names) and seamless(links)


def is_due(ready: Sequence[Arrived], *, every: float, tokens: int, now: float) -> bool:
    """Return whether files that are mapped become a generation now.

    Args:
        ready: The files.
        every: How long the first of them may wait, in seconds.
        tokens: How many tokens are enough; 0: any number waits.
        now: The time, in seconds since 1970.
    """
    if not ready:
        return False
    enough = 0 < tokens <= sum(arrived.tokens for arrived in ready)
    return enough or now - min(arrived.at for arrived in ready) >= every


class Waited(Mapping[str, float]):
    """For how long files have waited since they arrived: median and worst, at the time of asking.

    Seconds. So the lag in a report ends when the report is written.
    """

    def __init__(self, arrivals: Sequence[float]) -> None:
        self._arrivals = [*arrivals]

    def __getitem__(self, name: str) -> float:
        waits = [max(0.0, time.time() - at) for at in self._arrivals]
        if name not in self:
            raise KeyError(name)
        return round(statistics.median(waits) if name == "median" else max(waits), 1)

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)

    def __iter__(self) -> Iterator[str]:
        return iter(("median", "worst") if self._arrivals else ())

    def __len__(self) -> int:
        return 2 if self._arrivals else 0


@dataclass
class Totals:
    """What the watch has done since it began."""

    files: int = 0
    documents: int = 0
    tokens: int = 0
    generations: int = 0
    lags: list[float] = field(default_factory=list)
    """Median lag of each generation, the last hundred."""
    worst: float = 0.0


class Watch:
    """The driver of a watch, while it holds the lock on its output."""

    def __init__(self, run: Build, maker: Maker, *, folders: Folders, engine: Engine) -> None:
        """Prepare it.

        Args:
            run: Knows the chain; it is not used after this.
            maker: Makes the runs of generations.
            folders: Where files arrive.
            engine: Where the stream runs.
        """
        self._options = run.options
        self._output = run.output
        self._notes = Notes(run.output / WORK)
        self._maker = maker
        self._engine = engine
        self._watch = uuid.uuid4().hex
        self._stream = WatchJob(
            job=run.job,
            facts=run.chain.facts,
            source=folders,
            watch=self._watch,
            seen=seen_versions,
        )
        self._job: StreamJob | None = None
        self._submissions = 0
        self._pause = FIRST_PAUSE
        self._next_submission = self._submitted = 0.0
        self._arrived: dict[str, Arrived] = {}
        self._failed: set[str] = set()
        self._told: dict[str, float] = {}
        self._odd: dict[str, Odd] = {}
        self._growing: set[str] = set()
        self._seen: Mapping[str, Look | None] = {}
        self._number = 0
        self._last = 0
        self._beat = 0
        self._ending = False
        self._generation: threading.Thread | None = None
        self._making: Sequence[str] = ()
        """Keys of the files of the generation that is being made."""
        self._next_search = 0.0
        self._crash: BaseException | None = None
        self._retry_at = 0.0
        self._totals = Totals()
        self._line = Line()

    @property
    def _work(self) -> AnyPath:
        return self._output / WORK

    def run(self, stop: threading.Event) -> None:
        """Watch until told to stop, or until the time of --until; then drain."""
        self._learn()
        self._forget_others()
        until = self._options.until
        _LOG.info(
            "watching %s: a generation every %s%s%s; Ctrl-C commits what has arrived and ends",
            ", ".join(self._options.input),
            _duration(self._options.every),
            f" or {self._options.every_tokens:,} tokens" if self._options.every_tokens else "",
            f", until {until.isoformat(timespec='seconds')}" if until else "",
        )
        while not stop.wait(1.0) and not (until and datetime.now(UTC) >= until):
            self._turn()
        self._drain()

    def _turn(self) -> None:
        """Do once what a watch does again and again."""
        try:
            self._tell()
            self._keep_job()
            self._read_notes()
            if trouble := self._notes.read_trouble():
                self._say("inputs", f"waiting: {trouble}")
            if self._due():
                self._begin_generation()
            self._find_lost()
        except (UserError, OSError) as error:
            if not self._submitted:
                raise
            self._say("storage", f"waiting: {error}")
        self._attempt(self._check_generation)
        self._show()

    def _tell(self) -> None:
        """Tell the workers that the driver lives, and which generations there are."""
        self._beat += 1
        if self._beat % 10 == 1 or self._ending:
            self._write_control()

    def _write_control(self) -> None:
        control = Control(
            watch=self._watch,
            job=self._submissions,
            beat=self._beat,
            number=self._number,
            ending=self._ending,
        )
        self._notes.tell(control)

    def _keep_job(self) -> None:
        """Submit the job of the stream, and again if it has ended or is old."""
        if self._job is not None and self._job.ended:
            if time.monotonic() - self._submitted > CALM:
                self._pause = FIRST_PAUSE
            _LOG.warning(
                "the engine's job ended (%s): it is submitted again in %s; what was taken and "
                "mapped is known",
                self._job.error or "without an error",
                _duration(self._pause),
            )
            self._job = None
            self._next_submission = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if (self._job is None or self._job_is_old()) and time.monotonic() >= self._next_submission:
            # An old job learns from the control note that it is not the newest, and ends.
            self._submit()

    def _job_is_old(self) -> bool:
        waiting = sum(len(arrived.waiting) for arrived in self._arrived.values())
        return time.monotonic() - self._submitted > RENEWED_AFTER and waiting <= FEW_TASKS

    def _submit(self) -> None:
        self._next_submission = time.monotonic() + self._pause
        began = time.monotonic()
        self._submissions += 1
        self._write_control()
        stream = replace(self._stream, submission=self._submissions)
        try:
            flags = self._engine.flags()
            self._job = StreamJob(
                flags,
                dataset=self._output.name,
                steps=packed(prepare_arrivals, stream),
                run=packed(prepare_assignment, self._stream.job),
                children=num_workers(self._options.workers, work_bytes=_LARGE)
                if self._engine.own
                else 0,
                seconds=min(5.0, max(0.5, self._options.settle / 2)),
            )
        except Exception as error:
            if not self._submitted:
                raise UserError(
                    f"the engine does not take the job: {one_line(error, 300)}. Look at its own log"
                ) from error
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._next_submission = time.monotonic() + self._pause
            _LOG.warning(
                "the engine does not take the job (%s): tried again in %s",
                one_line(error, 300),
                _duration(self._pause),
            )
            return
        self._submitted = time.monotonic()
        page = f"; its page: {self._engine.page}" if self._engine.page else ""
        _LOG.info("job %s runs (%.0f s)%s", self._job.name, time.monotonic() - began, page)

    def _learn(self) -> None:
        """Learn which files the dataset has."""
        base = read_base(self._output)
        self._number = base.number if base else 0
        self._last = base.last_generation if base else 0
        self._seen = seen_versions(self._output)

    def _forget_others(self) -> None:
        """Forget notes that an earlier watch left and this one cannot use; files are taken anew."""
        for key in self._notes.names()[TAKEN]:
            note = self._notes.taken(key)
            if (
                note is None
                or note.file.source not in self._stream.job.corpora
                or note.split_bytes != self._options.split_bytes
            ):
                self._notes.forget(key, TAKEN, FAILED)
        for key in self._notes.names()[ODD]:  # what is odd still is noted again
            self._notes.forget(key, ODD)

    def _read_notes(self) -> None:
        """Learn from notes and records what has arrived, failed, and been mapped."""
        names = self._notes.names()
        for key in self._arrived.keys() - names[TAKEN]:
            del self._arrived[key]
        for key in self._failed - names[FAILED]:
            if key in self._arrived and not self._arrived[key].mapped:
                del self._arrived[key]  # perhaps it has changed and was taken anew
        for key in names[TAKEN] - self._arrived.keys():
            self._add(key)
        self._read_records()
        for key in names[FAILED]:
            self._tell_failure(key)
        self._failed = names[FAILED]
        self._tell_odd(names[ODD])

    def _add(self, key: str) -> None:
        note = self._notes.taken(key)
        if note is None:
            return
        tasks = tasks_of(note, self._stream)
        if key in self._seen:  # of a job that was late
            self._notes.forget(key, TAKEN, FAILED)
            forget_records(self._work / "map", [task.name for task in tasks])
        else:
            self._arrived[key] = _arrived(note, tasks)

    def _read_records(self) -> None:
        waiting = [arrived for arrived in self._arrived.values() if arrived.waiting]
        if not waiting:
            return
        folder = self._work / "map"
        listed = file_names(folder)
        for arrived in waiting:
            for name in [*arrived.waiting]:
                if f"{name}.json" in listed:
                    record = finished_record(SplitRecord, folder / f"{name}.json")
                    arrived.waiting.discard(name)
                    if record is None:
                        continue  # it is damaged: the making of a generation maps the split again
                    arrived.links[name] = record.link
                    arrived.documents += sum(item.documents for item in record.segments)
                    arrived.tokens += sum(item.tokens for item in record.segments)
            if arrived.mapped:
                self._totals.files += 1
                self._totals.documents += arrived.documents
                self._totals.tokens += arrived.tokens

    def _tell_failure(self, key: str) -> None:
        arrived = self._arrived.get(key)
        if arrived is not None and arrived.mapped:
            self._notes.forget(key, FAILED)  # tried again, with success
            return
        if arrived is None and not self._notes.has(key, TAKEN):
            self._notes.forget(key, FAILED)  # by then it was committed, or given up
            return
        note = self._notes.failed(key) if key not in self._failed else None
        if note is not None:
            name = arrived.file.path if arrived else key
            _LOG.warning("%s failed and is tried again later: %s", name, note.message)

    def _tell_odd(self, keys: set[str]) -> None:
        """Say which files are not taken, each once; of those that keep growing again and again."""
        told = 0
        self._growing &= keys
        for key in self._odd.keys() - keys:
            del self._odd[key]
        for key in sorted(keys - self._odd.keys() | self._growing & keys):
            note = self._notes.odd(key)
            before = self._odd.get(key)
            if note is None or (before and look_of(before.file) == look_of(note.file)):
                continue
            self._odd[key] = note
            (self._growing.add if note.why == GROWING else self._growing.discard)(key)
            told += 1
            if told <= MOST_TOLD:
                _LOG.warning("%s %s", note.file.path, note.why)
        if told > MOST_TOLD:
            _LOG.warning("and %d files more like these", told - MOST_TOLD)

    def _ready(self) -> dict[str, Arrived]:
        return {
            key: arrived
            for key, arrived in self._arrived.items()
            if arrived.mapped and key not in self._seen
        }

    def _find_lost(self) -> None:
        """Give up files that were deleted before they were mapped; looked for once a minute."""
        waiting = {key: arrived for key, arrived in self._arrived.items() if not arrived.mapped}
        if not waiting or time.monotonic() < self._next_search:
            return
        self._next_search = time.monotonic() + TOLD_EVERY
        listing = self._stream.source.look_once()
        now = time.time()
        for key, arrived in waiting.items():
            is_there = listing.may_have(arrived.file.source, arrived.file.relative)
            arrived.gone = 0.0 if is_there else arrived.gone or now
            if arrived.gone and (key in self._failed or now - arrived.gone >= LOST_AFTER):
                self._give_up(key)

    def _give_up(self, key: str) -> None:
        arrived = self._arrived.pop(key)
        self._notes.forget(key, TAKEN, FAILED, ODD)
        forget_records(self._work / "map", arrived.names)
        _LOG.warning("%s was deleted before it was mapped: it is left out", arrived.file.path)

    def _due(self) -> bool:
        """Return whether a generation is to be made now."""
        if self._being_made() or time.monotonic() < self._retry_at:
            return False
        if Ledger(self._output).open_entry(self._last) is not None:
            return True
        ready = [*self._ready().values()]
        return is_due(
            ready, every=self._options.every, tokens=self._options.every_tokens, now=time.time()
        )

    def _being_made(self) -> bool:
        return self._generation is not None

    def _begin_generation(self) -> None:
        """Make a generation of what is mapped, or the one that the ledger names, in a thread."""
        entry = Ledger(self._output).open_entry(self._last)
        if entry is not None:
            chosen = entry.files
            self._check_begun(chosen)
        else:
            for key, arrived in self._ready().items():
                # What does not join up is read once more, as a whole.
                if not arrived.whole and not _there(arrived.file):
                    self._give_up(key)
            chosen = [arrived.file for arrived in self._ready().values()]
        if not chosen:
            return
        self._making = [file_key(file.source, file.relative) for file in chosen]
        known = [self._arrived[key] for key in self._making if key in self._arrived]
        splits = {arrived.file: arrived.splits for arrived in known if arrived.mapped}
        lag = Waited([arrived.at for arrived in known])
        _LOG.info("generation of %d files begins", len(chosen))
        self._generation = threading.Thread(
            target=self._make, args=(chosen, splits, lag, self._left_out()), daemon=True
        )
        self._generation.start()

    def _left_out(self) -> dict[InputFile, str]:
        """Return what cannot be read now, and why."""
        notes = [note for _, note in sorted(self._odd.items())]
        return {note.file: note.why for note in notes if note.why not in (GROWING, CHANGED, BACK)}

    def _check_begun(self, files: Sequence[InputFile]) -> None:
        """Check that the generation which an earlier run had begun is one of this watch's inputs.

        Raises:
            UserError: It has files of another source.
        """
        for file in files:
            if file.source not in self._stream.job.corpora:
                raise UserError(
                    f"{self._output / LEDGER} names files of the source {file.source!r} for the "
                    "generation that was being made, and no input of this watch has that name: "
                    "give all inputs as before, or delete that file: its files count as new again"
                )

    def _make(
        self,
        files: Sequence[InputFile],
        splits: Mapping[InputFile, Sequence[Split]],
        lag: Waited,
        left_out: Mapping[InputFile, str],
    ) -> None:
        """Make a generation; a file whose splits are known and mapped need not be there."""
        try:
            with self._maker.build() as run:
                self._check_same(run)
                run.left_out = left_out
                grow(run, files, lag=lag or None, splits=splits)
            if lag:
                self._totals.lags = [*self._totals.lags[-99:], lag["median"]]
                self._totals.worst = max(self._totals.worst, lag["worst"])
        except (UserError, OSError) as error:
            self._retry_at = time.monotonic() + TOLD_EVERY
            _LOG.warning("waiting: the generation cannot be made yet; tried again: %s", error)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self._crash = error

    def _check_same(self, run: Build) -> None:
        """Check that nothing that decides bytes was replaced since the watch began.

        Raises:
            UserError: A model or a list was.
        """
        base = read_base(self._output)
        if base is not None:
            run.check_same(base, advice=_ADVICE)
        before, now = self._stream.facts, run.chain.facts
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                raise UserError(
                    f"what {flag_of(name)} names was replaced since the watch began: segments "
                    f"would be made with both. {_ADVICE}"
                )

    def _check_generation(self) -> None:
        """After a generation is made: the workers learn of it, then the notes of its files go.

        What was made is what the manifest says, whatever error came after it.
        """
        if self._crash is not None:
            raise self._crash
        if self._generation is None or self._generation.is_alive():
            return
        before = self._last
        self._learn()
        if self._last > before:
            self._totals.generations += 1
        self._write_control()
        for key in self._making:
            if key in self._seen:
                self._notes.forget(key, TAKEN, FAILED, ODD)
                self._arrived.pop(key, None)
        self._making = ()
        self._generation = None
        pa.default_memory_pool().release_unused()  # tables of all its documents are gone

    def _drain(self) -> None:
        """Take no more files, wait for what is in flight, and commit the open generation."""
        self._ending = True
        _LOG.info("ending: what is in flight is finished and committed; once more ends at once")
        began = busy = time.monotonic()
        while self._job is not None and not self._job.ended:
            self._attempt(self._tell)
            self._attempt(self._read_notes)
            self._attempt(self._check_generation)
            self._show()
            now = time.monotonic()
            flying = {key for key, arrived in self._arrived.items() if arrived.waiting}
            if flying - self._failed:
                busy = now
            # Nothing is in flight any more, and some engines keep such a job for minutes.
            if now - busy > QUIET or now - began > LONGEST_DRAIN:
                self._job.cancel()
                break
            time.sleep(0.5)
        self._finish()

    def _finish(self) -> None:
        """Commit what is mapped; then nothing but files that wait or failed is left."""
        self._attempt(self._read_notes)
        while self._being_made() or self._last_is_due():
            if not self._being_made() and time.monotonic() >= self._retry_at:
                self._attempt(self._begin_generation)
            self._attempt(self._check_generation)
            self._show()
            time.sleep(0.2)
        if self._job is None or self._job.ended:
            self._attempt(partial(existing.remove_leftovers, self._output))
        if self._arrived:
            _LOG.warning(
                "%d files are taken and not mapped: the next watch goes on with them",
                len(self._arrived),
            )
        elif not self._options.keep_segments:
            self._attempt(partial(clean_up, self._work))
        _LOG.info("%s", self._closing_line())

    def _last_is_due(self) -> bool:
        try:
            entry = Ledger(self._output).open_entry(self._last)
        except (UserError, OSError) as error:
            self._say("storage", f"waiting: {error}")
            return True
        return entry is not None or bool(self._ready())

    def _attempt(self, step: Any) -> None:
        try:
            step()
        except (UserError, OSError) as error:
            self._say("storage", f"waiting: {error}")

    def _say(self, about: str, message: str) -> None:
        """Say something that lasts, once a minute."""
        now = time.monotonic()
        self._told = {key: at for key, at in self._told.items() if now - at < TOLD_EVERY}
        if about not in self._told:
            self._told[about] = now
            _LOG.warning("%s", message)

    def _show(self) -> None:
        open_files = [*self._arrived.values()]
        mapped = [arrived for arrived in open_files if arrived.mapped]
        totals = self._totals
        state = "being made" if self._being_made() else "open"
        lag = f"lag {_duration(statistics.median(totals.lags))} median" if totals.lags else ""
        self._line.show(
            totals.tokens,
            [
                f"{totals.files:,} files",
                f"{totals.documents:,} documents",
                f"{len(open_files) - len(mapped):,} files being mapped",
                f"generation {self._number + 1} {state}: {len(mapped):,} files, "
                f"{sum(arrived.tokens for arrived in mapped):,} tokens",
                *([f"{lag}, {_duration(totals.worst)} worst"] if lag else []),
                *([f"{len(self._failed):,} failed"] if self._failed else []),
                *([f"{len(self._odd):,} not taken"] if self._odd else []),
            ],
        )

    def _closing_line(self) -> str:
        totals = self._totals
        return (
            f"the watch has ended: {totals.files:,} files, {totals.documents:,} documents and "
            f"{totals.tokens:,} tokens mapped, {totals.generations:,} generations committed in "
            f"{self._output}"
        )


class Line:
    """The line of progress, every SHOWN_EVERY seconds."""

    def __init__(self) -> None:
        self._shown = time.monotonic()
        self._tokens = 0

    def show(self, tokens: int, parts: Sequence[str]) -> None:
        """Show it if it is time; the rate is that since the last time."""
        seconds = time.monotonic() - self._shown
        if seconds < SHOWN_EVERY:
            return
        rate = (tokens - self._tokens) / seconds
        self._shown, self._tokens = time.monotonic(), tokens
        _LOG.info("%s", " | ".join(["watch", *parts, f"{rate:,.0f} tokens/s"]))


def seen_versions(output: AnyPath) -> dict[str, Look | None]:
    """Return the files that a dataset was made from, by key: the version, None if not known."""
    base = read_base(output)
    return (
        {}
        if base is None
        else {file_key(*name): look for name, look in seen_files(base, output=output).items()}
    )


def _arrived(note: Taken, tasks: Sequence[MapTask]) -> Arrived:
    names = tuple(task.name for task in tasks)
    splits = tuple(task.split for task in tasks)
    return Arrived(file=note.file, at=note.arrived, waiting={*names}, names=names, splits=splits)


def _there(file: InputFile) -> bool:
    return is_url(file.path) or Path(file.path).exists()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    words = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return " ".join([*words, *([f"{rest} s"] if rest or not words else [])])
