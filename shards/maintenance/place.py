"""Finds the files of a dataset that a node needs and copies them to its disk.

A node needs the shards of its scatters, the streams that are common to all nodes, validation, the
vocabulary, the removals and the manifest, but not audit, signatures and rejects. The node can use a
copy of these files like the whole dataset. A mark in the copy names the share, so that files
outside the share are not reported as missing.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shards.commands.output import quantity
from shards.commands.progress import track_files
from shards.commands.table import called
from shards.errors import DamageError, UserError
from shards.maintenance.verify import check_file
from shards.manifest import (
    NAME,
    TRAIN,
    VALIDATION,
    Manifest,
    ShardEntry,
    read_manifest,
    write_manifest,
)
from shards.paths import check_links
from shards.reader import Dataset
from shards.records import from_json, to_json
from shards.sampling.streams import is_common
from shards.storage.files import (
    FileEntry,
    atomic_write,
    file_size,
    read_blocks,
    read_json,
    size_if_there,
    write_json,
)
from shards.storage.lock import lock_dir
from shards.storage.remote import AnyPath

MARK = ".placed"
"""The file in a copy that names the share that was copied last; not part of the dataset."""

_NUM_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class NodeShare:
    """The part of a corpus that a process or a node reads."""

    scatters: tuple[int, ...]
    """The numbers of the scatters, sorted."""
    num_scatters: int

    def __str__(self) -> str:
        if len(self.scatters) == self.num_scatters:
            return "the whole corpus"
        return f"scatters {format_ranges(self.scatters)} of {self.num_scatters}"

    def of(self, shards: Sequence[ShardEntry]) -> Sequence[ShardEntry]:
        """Return the shards of a stream that belong to the share: all if the stream is common."""
        if is_common(shards, self.num_scatters):
            return shards
        return [shard for i, shard in enumerate(shards) if i % self.num_scatters in self.scatters]


def needed_files(manifest: Manifest, share: NodeShare) -> Iterator[tuple[str, FileEntry]]:
    """Yield the path and the entry of every file of a share except the manifest."""
    yield manifest.vocabulary.path, manifest.vocabulary
    for removal in manifest.removals:
        yield removal.documents.path, removal.documents
    for _, _, source in manifest.source_entries():
        for shard in (*share.of(source.split(TRAIN)), *source.split(VALIDATION)):
            yield from shard.named_files()


def check_files_present(dataset: Dataset, share: NodeShare) -> None:
    """Check that all files of a share exist with the right size.

    Contents are not read, so that a run can check this whenever it starts.

    Raises:
        DamageError: files are missing or truncated; the message says which, and how to get them.
    """
    missing = [
        path
        for path, entry in needed_files(dataset.manifest, share)
        if size_if_there(dataset.directory / path) != entry.bytes
    ]
    if not missing:
        return
    named = "".join(f"\n  {path}" for path in missing[:_NUM_NAMED])
    more = f"\n  and {len(missing) - _NUM_NAMED:,} more" if len(missing) > _NUM_NAMED else ""
    raise DamageError(
        f"{dataset.directory} lacks {quantity(len(missing), 'file')} that this node needs for "
        f"{share}, or has only a part of them. Copy them from the whole dataset: "
        f"{called('shards place')} WHOLE --to {dataset.directory} (with the run's --nodes, --node "
        f"and --scatters).{named}{more}"
    )


def format_ranges(numbers: Collection[int]) -> str:
    """Return numbers as text, with ranges for consecutive numbers: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def place(dataset: Dataset, share: NodeShare, *, to: Path) -> Iterator[tuple[str, int, bool]]:
    """Copy a share of a dataset into the folder `to`, and yield each file once it is complete.

    Files that already have the right checksum are kept, so that repeating an interrupted
    call finishes it. Every copy is checked against the manifest, which is written last.

    Yields:
        The path in the dataset, the size in bytes, and whether the file was copied (not kept).

    Raises:
        UserError: `to` contains another dataset, or the disk is full.
        DamageError: a file of the dataset is missing or does not match the manifest.
    """
    _check_target(dataset, to)
    with lock_dir(to):
        for path, entry in track_files("place", needed_files(dataset.manifest, share)):
            copied = check_file(to / path, entry) is not None
            if copied:
                _copy(dataset.directory / path, to / path, entry)
            yield path, entry.bytes, copied
        write_json(to / MARK, to_json(share))
        write_manifest(to, dataset.manifest)


def placed_share(directory: AnyPath) -> NodeShare | None:
    """Return the share that was placed in a folder; None if there is none.

    Raises:
        DamageError: the mark cannot be read.
    """
    mark = directory / MARK
    if not mark.exists():
        return None
    try:
        share = from_json(NodeShare, read_json(mark), where="share")
        if not all(0 <= scatter < share.num_scatters for scatter in (0, *share.scatters)):
            raise ValueError(f"there are no scatters {share.scatters} of {share.num_scatters}")
    except ValueError as error:
        raise DamageError(
            f"{mark} does not name the share that was placed here ({error}): run the same command "
            f"{called('shards place')} again, which writes it."
        ) from error
    return share


def _check_target(dataset: Dataset, to: Path) -> None:
    """Check that a share can be copied to a folder; nothing is written through a link there."""
    check_links(to, (path for path, _ in dataset.manifest.files()))
    whole, target = dataset.directory, to.resolve()
    if whole.resolve() in (target, *target.parents):
        raise UserError(
            f"--to {to} is the dataset's folder or is inside it: give a folder on the node's disk."
        )
    if not (to / NAME).exists():
        return
    present = read_manifest(to)
    whole_manifest = dataset.manifest
    if present.lineage != whole_manifest.lineage or present.number > whole_manifest.number:
        raise UserError(
            f"--to {to} contains {present.corpus}, manifest {present.number}: another dataset or "
            f"build than {whole}, or newer than its manifest {whole_manifest.number}. Give an "
            "empty folder, or delete that one first."
        )


def _copy(source: AnyPath, target: Path, entry: FileEntry) -> None:
    file_size(source)  # raises if it is missing, before anything is written
    with atomic_write(target) as handle:
        for block in read_blocks(source):
            handle.write(block)
        copied = handle.entry
        if (copied.bytes, copied.crc32c) != (entry.bytes, entry.crc32c):
            raise DamageError(
                f"{source} has {copied.bytes:,} bytes with crc32c {copied.crc32c:08x}, the "
                f"manifest says {entry.bytes:,} with {entry.crc32c:08x}: it is damaged. Restore it "
                "from a copy, or build the dataset again; files placed so far are kept."
            )
