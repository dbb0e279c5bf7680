"""What the steps of a watch do, whatever engine runs them: look, judge, map.

A file is complete once it has not changed for a while; one that is renamed into place with an
older time is complete at once. It is then noted with its splits (notes.py), which are mapped as in
any other run, under the same names.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pipelines.engine.figures import Done, Figures
from pipelines.engine.task import last_line
from pipelines.inputs.files import InputFile, Listing
from pipelines.map.mapper import Job, Mapper, MapTask
from pipelines.map.notes import (
    FAILED,
    ODD,
    TAKEN,
    Failed,
    Look,
    Notes,
    Odd,
    Taken,
    file_key,
    look_of,
)
from pipelines.map.phase import map_tasks
from pipelines.readers.reading import check_head, splits
from shards.errors import DamageError, UserError
from shards.storage.remote import AnyPath

TOLD_AFTER = 3600.0
"""Seconds after which a file that keeps changing is named, and then again."""

REPEATED_AFTER = 60.0
"""Seconds after which a file that is still waiting is judged again though nothing changed."""

MOST_REPEATED = 50.0
"""Files a second that are judged again for that reason, about: with more, they wait longer."""

MOST_AT_ONCE = 500
"""Files that one look hands on: what is found is judged before any of it is mapped."""

RETRIED_AFTER = 60.0
"""Seconds until a file that failed is tried again; twice as long each time, up to an hour."""

SILENT = 600.0
"""Seconds without a sign of the driver after which a job of a watch ends."""

GROWING = "keeps changing: it is taken once it does not"
CHANGED = "has changed after it was taken: what it was then goes into the dataset"
BACK = "is in the dataset, and has come back with another size or time: it is not taken again"

_LOG = logging.getLogger("corpusmill")


class FileNames(Protocol):
    """A source of files."""

    def look(self) -> Listing:
        """Return the files that are there now; what it remembers makes the next look cheaper."""

    def look_once(self) -> Listing:
        """Return what `look` does, without remembering it."""


@dataclass(frozen=True, kw_only=True)
class WatchJob:
    """What all workers of a watch share."""

    job: Job
    facts: Mapping[str, Any]
    """Fingerprints in place of the options that are paths."""
    source: FileNames
    watch: str
    """Identifies the watch."""
    submission: int = 0
    """Counts the jobs of the watch: each begins without memories of the one before."""
    seen: Callable[[AnyPath], Mapping[str, Look | None]]
    """Returns the files that the dataset in a folder was made from, by key: the version, or None
    where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A file as it was seen at one moment."""

    file: InputFile
    at: float
    """In seconds since 1970."""
    first: float | None = None
    """When this version of it was seen first; None: now."""
    in_dataset: bool = False
    """Whether the dataset already has a file of this name."""

    @property
    def look(self) -> Look:
        """The file's version."""
        return look_of(self.file)

    @property
    def since(self) -> float:
        """From when on it has been as it is, as far as it was looked at."""
        return self.at if self.first is None else self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is remembered of a file between sightings."""

    look: Look
    first: float
    """When it was first seen."""
    since: float
    """When it last changed."""
    taken: bool = False
    told: float = 0.0
    """When it was named as growing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A task, and when its file arrived."""

    task: MapTask
    arrived: float

    def __str__(self) -> str:
        return str(self.task)


class Arrivals:
    """The steps of a watch in one process."""

    def __init__(self, job: WatchJob) -> None:
        """Prepare them."""
        self._job = job
        self._options = job.job.options
        self._notes = Notes(job.job.work)
        self._readings = {name: corpus.reading for name, corpus in job.job.corpora.items()}
        self._number = -1
        self._seen: Mapping[str, Look | None] = {}
        self._shown: dict[str, tuple[Look, float, int]] = {}
        self._beat = (-1, time.monotonic())
        self._refused: dict[str, tuple[Look, str]] = {}
        self._looked = False

    def ended(self) -> bool:
        """Return whether no more is to be looked for: the watch ends, or is another one now."""
        try:
            control = self._notes.control()
        except (UserError, OSError):  # the storage is away: so is the reason to end
            return False
        if control is None or control.ending:
            return True
        if (control.watch, control.job) != (self._job.watch, self._job.submission):
            return True
        if control.beat != self._beat[0]:
            self._beat = control.beat, time.monotonic()
        return time.monotonic() - self._beat[1] > SILENT

    def look(self, now: float) -> Iterator[tuple[str, Sighting]]:
        """Yield the files that wait to be taken, by key: when new, changed, due, and now and then.

        Args:
            now: The time, in seconds since 1970.
        """
        try:
            self._learn()
            listing = self._job.source.look()
            self._notes.trouble("")
            self._note_refused(listing.refused)
        except (UserError, OSError) as error:
            with suppress(UserError, OSError):
                self._notes.trouble(str(error))
            return
        repeat = max(REPEATED_AFTER, len(self._shown) / MOST_REPEATED)
        shown: dict[str, tuple[Look, float, int]] = {}
        count = 0
        for file in listing.files:
            key = file_key(file.source, file.relative)
            look = look_of(file)
            if key in self._seen and self._seen[key] in (None, look):
                continue
            old, since, times = self._shown.get(key, (None, now, 0))
            if old != look:
                since, times = now, 0
            # After the first sighting: once it has settled, and then from time to time.
            due = since + (times > 0) * self._options.settle + max(0, times - 1) * repeat
            if now >= due and count < MOST_AT_ONCE:
                yield key, Sighting(file=file, at=now, first=since, in_dataset=key in self._seen)
                times += 1
                count += 1
            shown[key] = look, since, times
        self._shown = shown

    def _note_refused(self, refused: Mapping[InputFile, str]) -> None:
        """Note what cannot be taken as it is, files and folders, and forget what is mended."""
        now = {file_key(file.source, file.relative): (file, why) for file, why in refused.items()}
        if not self._looked:  # a folder that the process before this one noted may be mended
            for key in self._notes.names()[ODD] - now.keys():
                note = self._notes.odd(key)
                if note is not None and note.file.relative.endswith("/"):
                    self._notes.forget(key, ODD)
            self._looked = True
        for key in self._refused.keys() - now.keys():
            self._notes.forget(key, ODD)
            del self._refused[key]
        for key, (file, why) in now.items():
            if self._refused.get(key) != (look_of(file), why):
                self._report(key, Sighting(file=file, at=0.0), why)
                self._refused[key] = look_of(file), why

    def _learn(self) -> None:
        """Learn which files the dataset has, if it has grown."""
        control = self._notes.control()
        if control is not None and control.number != self._number:
            self._seen = self._job.seen(self._options.output)
            self._number = control.number

    def _has(self, key: str) -> bool:
        self._learn()
        return key in self._seen

    def judge(
        self, key: str, sighting: Sighting, memory: Memory | None
    ) -> tuple[Memory, list[Assignment]]:
        """Return what to remember of a file, and its tasks if it is to be mapped now.

        Args:
            key: Of the file.
            sighting: The file now.
            memory: What was remembered before; None at first, or if the engine started anew.
        """
        try:
            return self._judge(key, sighting, memory)
        except (UserError, OSError) as error:  # no note can be written: it is judged again
            _LOG.warning("%s", error)
            fresh = Memory(look=sighting.look, first=sighting.since, since=sighting.since)
            return memory or fresh, []

    def _judge(
        self, key: str, sighting: Sighting, memory: Memory | None
    ) -> tuple[Memory, list[Assignment]]:
        look, now = sighting.look, sighting.at
        fresh = Memory(look=look, first=sighting.since, since=sighting.since, told=now)
        if sighting.in_dataset:
            self._report(key, sighting, BACK)
            return replace(fresh, taken=True), []
        note = self._notes.taken(key) if memory is None or memory.taken else None
        if note is not None:
            return self._judge_taken(key, sighting, note, again=memory is None)
        if memory is not None and memory.taken and self._has(key):
            return memory, []  # its generation has just been committed
        if memory is None or memory.taken:
            memory = fresh
        elif look != memory.look:
            memory = replace(memory, look=look, since=sighting.since)
        if _quiet(memory, sighting) < self._options.settle:
            if now - memory.told >= TOLD_AFTER:
                self._report(key, sighting, GROWING)
                memory = replace(memory, told=now)
            return memory, []
        return replace(memory, taken=True), self._take(key, sighting.file, memory.first)

    def forgets(self, key: str, memory: Memory) -> bool:
        """Return whether a file is in the dataset, so that no look yields it any more."""
        return memory.taken and key in self._seen

    def _judge_taken(
        self, key: str, sighting: Sighting, note: Taken, *, again: bool
    ) -> tuple[Memory, list[Assignment]]:
        """Judge a file that has been taken: it may have failed, or have changed since.

        Args:
            key: Of the file.
            sighting: The file now.
            note: The note of it.
            again: Whether the engine has forgotten it, so that its tasks are handed out again.
        """
        look, now = sighting.look, sighting.at
        memory = Memory(look=look, first=note.arrived, since=now, taken=True, told=now)
        failed = self._notes.failed(key)
        if failed is None:
            if look != look_of(note.file):
                self._report(key, sighting, CHANGED)
            return memory, self._again(key, note) if again else []
        if look != look_of(note.file):  # what failed may be mended
            self._notes.forget(key, TAKEN, FAILED)  # in this order, for the driver to notice
            return replace(memory, first=now, taken=False), []
        pause = min(RETRIED_AFTER * 2 ** (failed.times - 1), TOLD_AFTER)
        if not again and (failed.trying or now < failed.at + pause):
            return memory, []
        if note.tasks:  # the engine sees to it that they run, however long that takes
            self._notes.write(key, replace(failed, at=now, trying=True))
        return memory, self._again(key, note)

    def _again(self, key: str, note: Taken) -> list[Assignment]:
        """Return the tasks of a file that is taken, under the names that this watch gives them.

        The note may be of a watch before this one, with other options or versions.
        """
        if not note.tasks:
            return self._take(key, note.file, note.arrived)
        tasks = tasks_of(note, self._job)
        if tasks != note.tasks:
            note = replace(note, tasks=tasks)
            self._notes.write(key, note)
        return _assignments(note)

    def _take(self, key: str, file: InputFile, arrived: float) -> list[Assignment]:
        """Note that a file is complete, and return its tasks."""
        if self._has(key):  # its generation was committed since it was sighted
            return []
        problem = ""
        tasks: list[MapTask] = []
        try:
            reading = self._readings[file.source]
            check_head(file, reading)
            cut = splits(file, reading, split_bytes=self._options.split_bytes)
            tasks = map_tasks(cut, self._job.job, self._job.facts)
        except UserError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - one file must not end the watch of all
            problem = last_line(error)
        note = Taken(
            file=file,
            arrived=arrived,
            tasks=tuple(tasks),
            split_bytes=self._options.split_bytes,
        )
        self._notes.write(key, note)
        self._notes.forget(key, ODD)
        if problem:
            self._fail(key, problem)
        return _assignments(note)

    def fail(self, assignment: Assignment, message: str) -> bool:
        """Note that a task failed in a way that the user can mend; return whether that is noted."""
        split = assignment.task.split
        try:
            self._fail(file_key(split.source, split.relative), message)
        except (UserError, OSError) as error:  # the storage is full or away
            _LOG.warning("%s", error)
            return self.ended()
        return True

    def _fail(self, key: str, message: str) -> None:
        before = self._notes.failed(key)
        times = before.times + 1 if before else 1
        self._notes.write(key, Failed(message=message, times=times, at=time.time()))

    def _report(self, key: str, sighting: Sighting, why: str) -> None:
        before = self._notes.odd(key)
        if before is None or before.why != why or look_of(before.file) != sighting.look:
            self._notes.write(key, Odd(file=sighting.file, why=why))

    def finished(self, assignment: Assignment) -> Figures:
        """Return what a task has made."""
        path = self._job.job.work / "map" / f"{assignment.task.name}.json"
        try:
            return Done(phase="map", record=path, seconds=None).figures()
        except DamageError:  # its generation has been committed meanwhile
            return Figures(counts={"tasks": 1})


def _quiet(memory: Memory, sighting: Sighting) -> float:
    """Return for how long a file has not changed, in seconds, by its own time if it has one."""
    mtime = sighting.file.mtime_ns / 1e9
    return max(sighting.at - memory.since, sighting.at - mtime if mtime else 0.0)


def tasks_of(note: Taken, job: WatchJob) -> tuple[MapTask, ...]:
    """Return the tasks of a file that is taken, as a watch names them."""
    return tuple(map_tasks([task.split for task in note.tasks], job.job, job.facts))


def _assignments(note: Taken) -> list[Assignment]:
    return [Assignment(task=task, arrived=note.arrived) for task in note.tasks]


def prepare_arrivals(job: WatchJob) -> Arrivals:
    """Return the steps of a watch for this process."""
    return Arrivals(job)


def prepare_assignment(job: Job) -> Callable[[Assignment], None]:
    """Return the function that maps what is assigned, unless that has been done."""
    mapper = Mapper(job)
    notes = Notes(job.work)

    def run(assignment: Assignment) -> None:
        split = assignment.task.split
        if (job.work / "map" / f"{assignment.task.name}.json").exists():
            return
        if notes.has(file_key(split.source, split.relative), TAKEN):  # else it is committed
            mapper.map(assignment.task)

    return run
