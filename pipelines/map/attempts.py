"""Notes of attempts at a split: where a process that died was, for the attempts after it.

    .work/attempts/<task>-<run>-<random>.json      {"doing": "judging", "start": 0, …}

An attempt writes a note when it begins and deletes it when it ends, whether it succeeds or raises
an error; a note that is left belongs to a process that died. The first attempt at a split notes
only that it began. An attempt that finds notes also notes its position before each step, and judges
one by one the records among which another died: so the second death points to a batch, the third to
a record. This works the same for the worker processes of this machine and for engines that repeat
tasks by themselves. A note counts within one run of the driver: a worker that was killed together
with its driver is no evidence against a record.
"""

import itertools
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from pipelines.readers.record import Damage, Record
from shards.errors import DamageError, UserError
from shards.own_files import remove_work
from shards.records import from_json
from shards.storage.disk import disk_errors_explained
from shards.storage.files import files, make_folder, read_json
from shards.storage.remote import AnyPath, RemotePath

MOST_POISON = 100
"""How many records of one split --skip-poison leaves out at most."""

READING, JUDGING, WRITING = "reading", "judging", "writing"

_DEATHS_TO_BLAME = 2
"""Deaths at one position after which it is to blame."""

_MOST_SILENT_DEATHS = 3
"""Deaths of attempts that noted no position after which the split is not tried again."""

Items = Sequence[Record | Damage]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPosition:
    """Where in a file an attempt was; offsets are those of records (bytes, or rows of a table)."""

    doing: str = ""
    """READING, JUDGING or WRITING; empty if the attempt noted only that it began."""
    start: int = 0
    end: int = 0
    records: int = 0
    """How many were judged together."""

    def __str__(self) -> str:
        if self.doing == READING:
            return f"reading on from {self.start:,}"
        if self.doing == WRITING:
            return f"writing the segment that ends at {self.end:,}"
        what = "the record" if self.records == 1 else f"{self.records:,} records"
        return f"judging {what} from {self.start:,} to {self.end:,}"

    @property
    def is_record(self) -> bool:
        """Whether it is a single record."""
        return self.doing == JUDGING and self.records == 1


@dataclass
class Attempt:
    """One attempt at a split. Without a file it notes nothing."""

    file: AnyPath | None = None
    deaths: Sequence[AttemptPosition] = ()
    """Where earlier attempts died."""
    poison: frozenset[tuple[int, int]] = frozenset()
    """Start and end of the records to leave out."""
    _suspects: list[AttemptPosition] = field(init=False)

    def __post_init__(self) -> None:
        self._suspects = [death for death in self.deaths if death.doing == JUDGING]

    def note(self, position: AttemptPosition) -> None:
        """Write down where the attempt is now, if earlier attempts died."""
        if self.deaths and self.file:
            _write_note(self.file, position)

    def watch(self, batches: Iterable[Items], *, start: int) -> Iterator[Items]:
        """Yield batches, noting before each that it is about to be read."""
        self.note(AttemptPosition(doing=READING, start=start, end=start))
        for items in batches:
            yield items
            start = items[-1].offset + items[-1].length
            self.note(AttemptPosition(doing=READING, start=start, end=start))

    def steps(self, items: Items) -> Iterator[Items]:
        """Yield runs of items to judge together, noting each: suspects alone, poison as damage."""
        spared = map(self._without_poison, items)
        for suspect, group in itertools.groupby(spared, key=self._is_suspect):
            run = list(group)
            for step in ([item] for item in run) if suspect else (run,):
                start, end = step[0].offset, step[-1].offset + step[-1].length
                self.note(AttemptPosition(doing=JUDGING, start=start, end=end, records=len(step)))
                yield step

    def _is_suspect(self, item: Record | Damage) -> bool:
        return any(suspect.start <= item.offset < suspect.end for suspect in self._suspects)

    def _without_poison(self, item: Record | Damage) -> Record | Damage:
        if (item.offset, item.offset + item.length) not in self.poison:
            return item
        return Damage(item.offset, item.length, "poison", item.head)


@contextmanager
def begin_attempt(
    work: AnyPath, task: str, *, run: str, skip_poison: bool, description: str
) -> Iterator[Attempt]:
    """Yield an attempt at a task; if the process dies meanwhile, the attempt's note stays.

    Args:
        work: The run's folder of intermediate files.
        task: The name of the task's record.
        run: Identifies one run of the driver.
        skip_poison: Leave out records at which earlier attempts died.
        description: The task in error messages.

    Raises:
        UserError: Too many attempts died already.
    """
    folder = work / "attempts"
    notes = _notes(folder, f"{task}-{run}-")
    deaths = [_read_note(path) for path in notes]
    # A single death at a record may be due to memory that others took, or to a lost machine.
    times = Counter((death.start, death.end) for death in deaths if death.is_record)
    poison = {record for record, count in times.items() if count >= _DEATHS_TO_BLAME}
    _check_deaths(deaths, skip_poison=skip_poison, description=description)
    note = folder / f"{task}-{run}-{uuid.uuid4().hex}.json"
    try:
        _write_note(note, AttemptPosition())
        yield Attempt(note, deaths, frozenset(poison if skip_poison else ()))
    except MemoryError:  # the process is about to be ended for it: the note stays
        raise
    except BaseException:
        note.unlink(missing_ok=True)
        raise
    note.unlink(missing_ok=True)
    for path in notes:
        path.unlink(missing_ok=True)


def death_advice(work: AnyPath, task: str, *, run: str) -> str:
    """Return where attempts at a task died and what to do about it; empty if none noted where."""
    return _advice([_read_note(path) for path in _notes(work / "attempts", f"{task}-{run}-")])


def died_before(work: AnyPath) -> bool:
    """Return whether processes died here while they mapped a split."""
    return bool(_notes(work / "attempts", ""))


def forget(work: AnyPath) -> None:
    """Delete all notes; no attempt may be under way."""
    remove_work(work, "attempts")


def _check_deaths(
    deaths: Sequence[AttemptPosition], *, skip_poison: bool, description: str
) -> None:
    repeated = Counter(
        death for death in deaths if death.doing and not (skip_poison and death.is_record)
    )
    records = {death for death in deaths if death.is_record}
    silent = sum(not death.doing for death in deaths)
    if skip_poison and len(records) > MOST_POISON:
        raise UserError(
            f"more than {MOST_POISON} records of the {description} end the process that judges "
            f"them, the last one at {max(record.start for record in records):,}: the records are "
            "not the cause. Check the memory of the machine and the libraries"
        )
    if max(repeated.values(), default=0) >= _DEATHS_TO_BLAME or silent >= _MOST_SILENT_DEATHS:
        raise UserError(
            f"{len(deaths)} processes died one after the other at the {description}."
            f"{_advice(deaths)} "
            "Finished work is kept"
        )


def _advice(deaths: Sequence[AttemptPosition]) -> str:
    located = [death for death in deaths if death.doing]
    if not located:
        return ""
    death = min(located, key=lambda death: (death.doing != JUDGING, death.records, death.start))
    remedy = (
        "; --skip-poison quarantines such records and keeps the rest"
        if death.doing == JUDGING
        else ""
    )
    return f" It died {death} (bytes of the text, or rows of a table){remedy}."


def _notes(folder: AnyPath, prefix: str) -> list[AnyPath]:
    if isinstance(folder, RemotePath):
        return [folder / name for name in files(folder) if name.startswith(prefix)]
    return sorted(folder.glob(f"{prefix}*.json"))


def _read_note(path: AnyPath) -> AttemptPosition:
    try:
        return from_json(AttemptPosition, read_json(path), where=str(path))
    except (DamageError, ValueError):  # its process died while writing it, or has just ended
        return AttemptPosition()


def _write_note(path: AnyPath, position: AttemptPosition) -> None:
    """Write a note without fsync: it has to outlive the process, not the machine."""
    text = json.dumps(asdict(position))
    if isinstance(path, RemotePath):
        path.write(text.encode())
        return
    make_folder(path.parent)
    with disk_errors_explained(path):
        path.write_text(text)
