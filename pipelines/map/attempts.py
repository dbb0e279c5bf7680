"""Notes of attempts at a split: what a process that died was at, for the attempts after it.

    .work/attempts/<task>-<run>-<random>.json      {"doing": "judging", "start": 0, …}

An attempt leaves a note when it begins and deletes it when it ends, well or with an error; what is
left is of a process that died. The first attempt at a split says no more than that it began. One
that finds notes says before each step where it is, and goes record by record through what another
died at: so the second death tells a batch, the third a record. That works the same for the worker
processes of this machine and for engines that repeat tasks by themselves. A note counts within one
run of the driver: what was killed together with it is no evidence.
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
from shards.storage.files import files, make_folder, read_json, remove_tree
from shards.storage.remote import AnyPath, RemotePath

MOST_POISON = 100
"""Records of one split that --skip-poison leaves out."""

READING, JUDGING, WRITING = "reading", "judging", "writing"

_TWICE = 2
"""Deaths at one place after which it is to blame."""

_ENOUGH = 3
"""Deaths before any place was told after which nobody tries again."""

Items = Sequence[Record | Damage]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPosition:
    """Where in a file an attempt was; offsets are those of records."""

    doing: str = ""
    """READING, JUDGING or WRITING; empty where the attempt did not say."""
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
    """One attempt at a split. Without a file it watches nothing."""

    file: AnyPath | None = None
    deaths: Sequence[AttemptPosition] = ()
    """Where earlier attempts died."""
    poison: frozenset[tuple[int, int]] = frozenset()
    """The records to leave out: where they begin and end."""
    _suspects: list[AttemptPosition] = field(init=False)

    def __post_init__(self) -> None:
        self._suspects = [place for place in self.deaths if place.doing == JUDGING]

    def say(self, place: AttemptPosition) -> None:
        """Note where the attempt is now, if others died."""
        if self.deaths and self.file:
            _write(self.file, place)

    def watched(self, batches: Iterable[Items], *, start: int) -> Iterator[Items]:
        """Yield batches, noting before each one that it is about to be read."""
        self.say(AttemptPosition(doing=READING, start=start, end=start))
        for items in batches:
            yield items
            start = items[-1].offset + items[-1].length
            self.say(AttemptPosition(doing=READING, start=start, end=start))

    def steps(self, items: Items) -> Iterator[Items]:
        """Yield what is to be judged together, noting each: suspects alone, poison as damage."""
        for alone, run in itertools.groupby(map(self._spared, items), key=self._is_suspect):
            found = list(run)
            for step in ([item] for item in found) if alone else (found,):
                start, end = step[0].offset, step[-1].offset + step[-1].length
                self.say(AttemptPosition(doing=JUDGING, start=start, end=end, records=len(step)))
                yield step

    def _is_suspect(self, item: Record | Damage) -> bool:
        return any(place.start <= item.offset < place.end for place in self._suspects)

    def _spared(self, item: Record | Damage) -> Record | Damage:
        if (item.offset, item.offset + item.length) not in self.poison:
            return item
        return Damage(item.offset, item.length, "poison", item.head)


@contextmanager
def attempt(work: AnyPath, task: str, *, run: str, skip: bool, name: str) -> Iterator[Attempt]:
    """Yield an attempt at a task while others may learn of its death.

    Args:
        work: The run's folder of intermediate files.
        task: The name of its record.
        run: What tells one run of the driver from another.
        skip: Leave records out at which others died.
        name: What a person calls the task.

    Raises:
        UserError: Too many died already.
    """
    folder = work / "attempts"
    notes = _notes(folder, f"{task}-{run}-")
    deaths = [_place(path) for path in notes]
    # One death there may be a neighbour's hunger, or a machine that went.
    times = Counter((place.start, place.end) for place in deaths if place.is_record)
    found = {place for place, count in times.items() if count >= _TWICE}
    _check(deaths, skip=skip, name=name)
    made = Attempt(folder / f"{task}-{run}-{uuid.uuid4().hex}.json", deaths)
    made.poison = frozenset(found if skip else ())
    assert made.file is not None
    _write(made.file, AttemptPosition())
    try:
        yield made
    except MemoryError:  # the process is about to be ended for it: the note stays
        raise
    except BaseException:
        made.file.unlink(missing_ok=True)
        raise
    made.file.unlink(missing_ok=True)
    for path in notes:
        path.unlink(missing_ok=True)


def advice(work: AnyPath, task: str, *, run: str) -> str:
    """Return where attempts at a task died and what to do about it; empty if nobody knows."""
    deaths = [_place(path) for path in _notes(work / "attempts", f"{task}-{run}-")]
    return _told(deaths)


def died_before(work: AnyPath) -> bool:
    """Return whether processes died here that were at a split."""
    return bool(_notes(work / "attempts", ""))


def forget(work: AnyPath) -> None:
    """Delete all notes; no attempt must be under way."""
    remove_tree(work / "attempts")


def _check(deaths: Sequence[AttemptPosition], *, skip: bool, name: str) -> None:
    again = Counter(place for place in deaths if place.doing and not (skip and place.is_record))
    records = {place for place in deaths if place.is_record}
    silent = sum(not place.doing for place in deaths)
    if skip and len(records) > MOST_POISON:
        raise UserError(
            f"more than {MOST_POISON} records of the {name} end the process that judges them, the "
            f"last one {max(place.start for place in records):,}: it is not the records. Look at "
            "the memory of the machine and at the libraries"
        )
    if max(again.values(), default=0) >= _TWICE or silent >= _ENOUGH:
        raise UserError(
            f"{len(deaths)} processes died one after the other at the {name}.{_told(deaths)} "
            "Finished work is kept"
        )


def _told(deaths: Sequence[AttemptPosition]) -> str:
    known = [place for place in deaths if place.doing]
    if not known:
        return ""
    place = min(known, key=lambda place: (place.doing != JUDGING, place.records, place.start))
    help = (
        "; --skip-poison quarantines such records and keeps the rest"
        if place.doing == JUDGING
        else ""
    )
    return f" It died {place} (bytes of the text, or rows of a table){help}."


def _notes(folder: AnyPath, prefix: str) -> list[AnyPath]:
    if isinstance(folder, RemotePath):
        return [folder / name for name in files(folder) if name.startswith(prefix)]
    return sorted(folder.glob(f"{prefix}*.json"))


def _place(path: AnyPath) -> AttemptPosition:
    try:
        return AttemptPosition(**read_json(path))
    except DamageError:  # its process died while it wrote, or has just ended
        return AttemptPosition()


def _write(path: AnyPath, place: AttemptPosition) -> None:
    """Write a note at once, without bringing it to the disk: it has to outlive a process."""
    text = json.dumps(asdict(place))
    if isinstance(path, RemotePath):
        path.write(text.encode())
        return
    make_folder(path.parent)
    path.write_text(text)
