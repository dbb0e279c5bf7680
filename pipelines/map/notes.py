"""Notes between the driver of a watch and the workers that map for it: .work/watch.

    trouble.json          why the inputs cannot be listed
    driver.json           which watch this is, and whether it is about to end
    <file>.taken.json     the file is complete: its splits, when it arrived
    <file>.failed.json    its map failed: why
    <file>.odd.json       it is not taken: it keeps growing, or came back with other content

<file> is a hash of the file's source and path. A note is written whole; the one of a taken file
goes when a generation with the file has been committed. Nobody else needs to be asked what a watch
has done so far: a job that starts anew, on whatever engine, goes on from the notes.
"""

import hashlib
from dataclasses import dataclass
from typing import TypeVar

from pipelines.inputs.files import InputFile
from pipelines.map.mapper import MapTask
from shards.errors import DamageError
from shards.records import from_json, to_json
from shards.storage.files import file_names, read_json, write_json
from shards.storage.remote import AnyPath

Note = TypeVar("Note")

Look = tuple[int, int, str]
"""Size, time and etag: what is known of a file's version without reading it."""

TAKEN, FAILED, ODD = "taken", "failed", "odd"
_DRIVER, _TROUBLE = "driver.json", "trouble.json"


def look_of(file: InputFile) -> Look:
    """Return the version of a file."""
    return file.bytes, file.mtime_ns, file.etag


def file_key(source: str, relative: str) -> str:
    """Return the name of a file's notes."""
    return hashlib.sha256(f"{source}\0{relative}".encode()).hexdigest()[:24]


@dataclass(frozen=True, kw_only=True)
class Control:
    """What the driver tells the workers."""

    watch: str
    """Identifies the watch: workers of an older one end."""
    job: int
    """Counts the jobs of the watch: older ones end."""
    beat: int
    """Grows while the driver lives."""
    number: int
    """Of the dataset's manifest; 0 if there is none."""
    ending: bool
    """No more files are taken."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A file that was complete, and its tasks; without tasks it could not be cut."""

    file: InputFile
    arrived: float
    """When it was first seen, in seconds since 1970."""
    tasks: tuple[MapTask, ...]
    split_bytes: int
    """The option by which it was cut."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """Why a file could not be mapped."""

    message: str
    times: int
    """How often it has failed."""
    at: float
    """The last time, in seconds since 1970."""
    trying: bool = False
    """Whether it has been handed out again since."""


@dataclass(frozen=True, kw_only=True)
class Odd:
    """Why a file is not taken."""

    file: InputFile
    why: str


class Notes:
    """The notes of the watch on a dataset."""

    def __init__(self, work: AnyPath) -> None:
        """Find them in the folder of intermediate files."""
        self.folder = work / "watch"

    def control(self) -> Control | None:
        """Return what the driver says; None if there is nothing."""
        return self._read(Control, _DRIVER)

    def tell(self, control: Control) -> None:
        """Write what the driver says."""
        write_json(self.folder / _DRIVER, to_json(control))

    def trouble(self, message: str) -> None:
        """Write why the inputs cannot be listed; empty: they can."""
        path = self.folder / _TROUBLE
        if message:
            write_json(path, message)
        elif path.exists():
            path.unlink(missing_ok=True)

    def read_trouble(self) -> str:
        """Return why the inputs cannot be listed; empty if they can."""
        path = self.folder / _TROUBLE
        try:
            return str(read_json(path)) if path.exists() else ""
        except DamageError:  # deleted meanwhile
            return ""

    def taken(self, key: str) -> Taken | None:
        """Return the note of a file that is taken."""
        return self._read(Taken, f"{key}.{TAKEN}.json")

    def failed(self, key: str) -> Failed | None:
        """Return the note of a file that failed."""
        return self._read(Failed, f"{key}.{FAILED}.json")

    def odd(self, key: str) -> Odd | None:
        """Return the note of a file that is not taken."""
        return self._read(Odd, f"{key}.{ODD}.json")

    def write(self, key: str, note: Taken | Failed | Odd) -> None:
        """Write or replace a note of a file."""
        kind = {Taken: TAKEN, Failed: FAILED, Odd: ODD}[type(note)]
        write_json(self.folder / f"{key}.{kind}.json", to_json(note))

    def has(self, key: str, kind: str) -> bool:
        """Return whether a file has a note of a kind."""
        return (self.folder / f"{key}.{kind}.json").exists()

    def forget(self, key: str, *kinds: str) -> None:
        """Delete notes of a file, if they are there."""
        for kind in kinds:
            (self.folder / f"{key}.{kind}.json").unlink(missing_ok=True)

    def names(self) -> dict[str, set[str]]:
        """Return which files have a note of each kind."""
        keys: dict[str, set[str]] = {kind: set() for kind in (TAKEN, FAILED, ODD)}
        for name in file_names(self.folder):
            key, _, kind = name.removesuffix(".json").partition(".")
            if kind in keys:
                keys[kind].add(key)
        return keys

    def _read(self, note_type: type[Note], name: str) -> Note | None:
        path = self.folder / name
        try:
            return from_json(note_type, read_json(path), where=str(path)) if path.exists() else None
        except DamageError:  # deleted meanwhile
            return None
        except ValueError:  # of another version of this program: the file is taken again
            return None
