"""Which files of a dataset a node needs, and how they get onto its disk.

A node needs the shards of its scatters, the streams that are common to all nodes, validation, the
vocabulary, the removals and the manifest; not the audit, the signatures, the rejects. A copy with
these files is a dataset like the whole one, but for the pieces that it lacks.
"""

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shards.errors import DamageError, UserError
from shards.manifest import (
    NAME,
    TRAIN,
    VALIDATION,
    Manifest,
    ShardEntry,
    read_manifest,
    write_manifest,
)
from shards.order.streams import is_common
from shards.reader import Dataset
from shards.storage.files import FileEntry, atomic_write, blocks, size
from shards.storage.lock import locked
from shards.storage.remote import AnyPath
from shards.verify import check_file

_NUM_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class NodeShare:
    """The part of the corpus that a process or a node reads."""

    scatters: Collection[int]
    num_scatters: int

    def __str__(self) -> str:
        if len(self.scatters) == self.num_scatters:
            return "the whole corpus"
        return f"scatters {ranges(self.scatters)} of {self.num_scatters}"

    def of(self, shards: Sequence[ShardEntry]) -> Sequence[ShardEntry]:
        """Return those of a stream's shards that are among them: all of a common stream."""
        if is_common(shards, self.num_scatters):
            return shards
        return [shard for i, shard in enumerate(shards) if i % self.num_scatters in self.scatters]


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A file that is where it is needed."""

    path: str
    """Relative to the dataset, with forward slashes."""
    bytes: int
    copied: bool
    """False: it was there already, with the right checksum."""


def needed(manifest: Manifest, pieces: NodeShare) -> Iterator[tuple[str, FileEntry]]:
    """Yield the files that `pieces` are in, without the manifest: path in the dataset, entry."""
    yield manifest.vocabulary.path, manifest.vocabulary
    for removal in manifest.removals:
        yield removal.documents.path, removal.documents
    for shard in _shards(manifest, pieces):
        for suffix, entry in shard.files.items():
            yield f"{shard.path}.{suffix}", entry


def _shards(manifest: Manifest, pieces: NodeShare) -> Iterator[ShardEntry]:
    for generation in manifest.generations:
        for _, source in sorted(generation.sources.items()):
            yield from pieces.of(source.split(TRAIN))
            yield from source.split(VALIDATION)


def require(dataset: Dataset, pieces: NodeShare) -> None:
    """Return if all files that `pieces` are in are there and of the right size; else raise.

    Only sizes are looked at, so that a run can ask whenever it starts.

    Raises:
        DamageError: names the files that are missing or cut short, and says how to get them.
    """
    lacking = [
        path
        for path, entry in needed(dataset.manifest, pieces)
        if not _is_whole(dataset.directory / path, entry)
    ]
    if not lacking:
        return
    named = "".join(f"\n  {path}" for path in lacking[:_NUM_NAMED])
    more = f"\n  and {len(lacking) - _NUM_NAMED:,} more" if len(lacking) > _NUM_NAMED else ""
    raise DamageError(
        f"{dataset.directory} lacks {len(lacking):,} files that this node needs for "
        f"{pieces}, or has them cut short. Copy them from the whole dataset: "
        f"python -m shards place WHOLE --to {dataset.directory} (with the run's --nodes, --node "
        f"and --scatters).{named}{more}"
    )


def _is_whole(path: AnyPath, entry: FileEntry) -> bool:
    try:
        return size(path) == entry.bytes
    except DamageError:
        return False


def ranges(numbers: Collection[int]) -> str:
    """Return numbers as a person writes them: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def check(dataset: Dataset, pieces: NodeShare) -> Iterator[str]:
    """Yield a line for every needed file that is missing or not the right one; all are read."""
    for path, entry in needed(dataset.manifest, pieces):
        if problem := check_file(dataset.directory / path, entry):
            yield problem


def place(dataset: Dataset, pieces: NodeShare, *, to: Path) -> Iterator[Placed]:
    """Copy what is needed of a dataset into the folder `to`, and yield each file when it is there.

    Files that are there with the right checksum are kept, so that the same call finishes what an
    earlier one began. Every copy is checked against the manifest, which comes last.

    Raises:
        UserError: `to` holds something else, or has not enough room.
        DamageError: the dataset lacks a file, or has one that is not as the manifest says.
    """
    _check_target(dataset, to)
    files = list(needed(dataset.manifest, pieces))
    with locked(to):
        _check_room(files, to)
        for path, entry in files:
            copied = check_file(to / path, entry) is not None
            if copied:
                _copy(dataset.directory / path, to / path, entry)
            yield Placed(path=path, bytes=entry.bytes, copied=copied)
        write_manifest(to, dataset.manifest)


def _check_target(dataset: Dataset, to: Path) -> None:
    if not (to / NAME).exists():
        return
    if isinstance(dataset.directory, Path) and to.samefile(dataset.directory):
        raise UserError(f"--to {to} is the dataset itself: name a folder on the node's own disk.")
    there = read_manifest(to)
    if there.lineage != dataset.manifest.lineage:
        raise UserError(
            f"--to {to} holds another dataset ({there.corpus}, identity {there.identity[:12]}…) or "
            "an earlier build of this one: name an empty folder, or delete that one first."
        )
    if there.number > dataset.manifest.number:
        raise UserError(
            f"--to {to} holds manifest {there.number} of this dataset, newer than "
            f"{dataset.manifest.number}, which is asked for: place the newer one, or name another "
            "folder."
        )


def _check_room(files: Collection[tuple[str, FileEntry]], to: Path) -> None:
    absent = sum(entry.bytes for path, entry in files if not _is_whole(to / path, entry))
    if absent > (free := shutil.disk_usage(to).free):
        raise UserError(
            f"{absent / 1e6:,.0f} MB are to be copied to {to}, and its disk has {free / 1e6:,.0f} "
            "MB left: make room, or spread the corpus over more nodes or scatters."
        )


def _copy(source: AnyPath, target: Path, entry: FileEntry) -> None:
    size(source)  # says that it is missing, before anything is written
    with atomic_write(target) as handle:
        for block in blocks(source):
            handle.write(block)
        found = handle.entry
        if (found.bytes, found.crc32c) != (entry.bytes, entry.crc32c):
            raise DamageError(
                f"{source} has {found.bytes:,} bytes with crc32c {found.crc32c:08x}, the manifest "
                f"says {entry.bytes:,} with {entry.crc32c:08x}: it is damaged. Restore it from a "
                "copy, or build the dataset again; what was placed so far is kept."
            )
