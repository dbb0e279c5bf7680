"""Checkpoints: complete or absent, on one disk for all nodes or on each node's own.

    RUN/step-200/*.pt                  what DeepSpeed wrote: one node's ranks, or all ranks
    RUN/step-200/whole-00000.json      their list, written last, by the first of those ranks
    RUN/latest                         step-200, for DeepSpeed's own tools; never read here

The list holds the size and crc32c of each file, the ranks that wrote them, and the state of the
run. A crash leaves a folder without a list, and may leave nodes at different steps; at the start
all ranks agree on the newest step that is complete for every one of them.
"""

import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from shards.errors import DamageError, UserError
from shards.records import from_json, to_json
from shards.storage.files import FileEntry, atomic_write, crc32c, read_json, size, write_json
from trainer.disk import Disk
from trainer.ranks import AgreedError, Ranks, describe_problems
from trainer.torch_file import check, deepspeed_types

ADVICE = (
    "This trainer writes no such file: somebody changed it. Bring it back as it was, or remove its "
    "folder, and the run resumes from the checkpoint before."
)
"""What to do about a file that could run code."""
_MOST_RANKS = 2**20
_VERSION = 1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FileList:
    """The list of files that some ranks wrote."""

    version: int
    step: int
    ranks: tuple[int, ...]
    world: int
    stage: int
    """Of ZeRO."""
    files: Mapping[str, FileEntry]
    """By path in the checkpoint's folder."""
    state: Mapping[str, Any]
    """Of the run, the same in all lists."""

    def __post_init__(self) -> None:
        """Check what later code relies on.

        Raises:
            ValueError: a value is out of range, or a file lies outside the folder.
        """
        for name, low, high in (("step", 0, 2**62), ("world", 1, _MOST_RANKS), ("stage", 0, 3)):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} is {getattr(self, name)}; expected {low} to {high}")
        if outside := [rank for rank in self.ranks if not 0 <= rank < self.world]:
            raise ValueError(f"rank {outside[0]} is none of {self.world}")
        for name in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\0" in name:
                raise ValueError(f"{name!a} is no file in it")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint as one rank sees it: complete on this rank's disk."""

    folder: Path
    step: int
    world: int
    stage: int
    state: Mapping[str, Any]
    files: Mapping[str, FileEntry]

    @property
    def tag(self) -> str:
        """DeepSpeed's name for it."""
        return self.folder.name


def save(
    engine: Any, disk: Disk, *, step: int, state: Mapping[str, Any], keep: int, ranks: Ranks
) -> None:
    """Write a checkpoint; on return it is complete on all nodes, and older ones are pruned.

    Raises:
        UserError: a disk is full, or a file cannot be written; earlier checkpoints are kept.
    """
    folder = disk.folder / f"step-{step}"
    if ranks.rank == disk.leader:
        _remove(folder)
    ranks.barrier()
    try:
        engine.save_checkpoint(
            str(disk.folder), folder.name, client_state={"step": step}, save_latest=False
        )
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"{folder} could not be written ({error}): free some space on its disk and run the "
            "same command again; it resumes from the checkpoint before."
        ) from error
    ranks.together(lambda: None)  # a rank whose disk is full has left by now
    files = _entries(folder, disk=disk, ranks=ranks)
    if ranks.rank == disk.leader:
        file_list = FileList(
            version=_VERSION,
            step=step,
            ranks=disk.members,
            world=ranks.world,
            stage=int(engine.zero_optimization_stage()),
            files=files,
            state=state,
        )
        write_json(folder / f"whole-{ranks.rank:05d}.json", to_json(file_list))
        with atomic_write(disk.folder / "latest") as handle:
            handle.write(folder.name.encode())
    ranks.barrier()
    if ranks.rank == disk.leader:
        _prune(disk.folder, step=step, keep=keep, ranks=ranks)


def _prune(root: Path, *, step: int, keep: int, ranks: Ranks) -> None:
    """Remove what is older than the last `keep` checkpoints up to the one just written.

    Only complete ones count. Folders of later steps, which a run left unfinished or damaged before
    it went back to an earlier step, stay until it reaches their step again.
    """
    older = [old for old in steps_in(root) if old < step]
    complete = [
        old
        for old in older
        if isinstance(
            read_checkpoint(root / f"step-{old}", rank=ranks.rank, world=ranks.world), Checkpoint
        )
    ]
    first_kept = [*complete, step][-keep:][0]
    for old in older:
        if old < first_kept:
            _remove(root / f"step-{old}")


def _entries(folder: Path, *, disk: Disk, ranks: Ranks) -> dict[str, FileEntry]:
    """Return the files of a new checkpoint, flushed to the disk; the ranks share the reading."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    names = sorted(path.relative_to(folder).as_posix() for path in paths)
    index = disk.members.index(ranks.rank)
    own = {name: _entry(folder / name) for name in names[index :: len(disk.members)]}
    by_rank = ranks.gather(own)
    entries = {name: entry for rank in disk.members for name, entry in by_rank[rank].items()}
    return dict(sorted(entries.items()))


def _entry(path: Path) -> FileEntry:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return FileEntry(bytes=size(path), crc32c=crc32c(path))


def _remove(folder: Path) -> None:
    """Remove a checkpoint, its lists first, so that a crash on the way leaves no list."""
    for path in folder.glob("whole-*.json"):
        path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def steps_in(root: Path) -> list[int]:
    """Return the steps that have a folder, complete or not, ascending."""
    names = (re.fullmatch(r"step-(\d+)", path.name) for path in root.glob("step-*"))
    return sorted(int(name[1]) for name in names if name)


def find_common_checkpoint(folder: Path, *, ranks: Ranks, disk: Disk | None) -> Checkpoint | None:
    """Return the newest checkpoint that is complete for all ranks, None if there are none at all.

    Newer ones that some rank lacks, or has damaged, are reported and skipped.

    Args:
        folder: of a run, or of one of its checkpoints.
        ranks: all of them call this.
        disk: who sees the folder, to share the reading of checksums; None: read everything.

    Raises:
        AgreedError: there are checkpoints, but none is complete for every rank; lists them.
    """
    single = re.fullmatch(r"step-(\d+)", folder.name)
    root = folder.parent if single else folder
    steps = [int(single[1])] if single else steps_in(root)
    own = {
        step: read_checkpoint(root / f"step-{step}", rank=ranks.rank, world=ranks.world)
        for step in steps
    }
    by_rank = ranks.gather({s: c if isinstance(c, str) else None for s, c in own.items()})
    skipped: list[str] = []
    for step in sorted({step for problems in by_rank for step in problems}, reverse=True):
        problems = [of_rank.get(step, f"{root} has no step-{step}") for of_rank in by_rank]
        if not any(problems):
            problems = ranks.gather(_find_damage(own[step], ranks=ranks, disk=disk))
        if not any(problems):
            if skipped and ranks.is_first:
                _log.warning("%s", "\n  ".join(skipped))
            return _as_checkpoint(own[step])
        skipped.append(f"step-{step} is skipped: {describe_problems(problems)}")
    if skipped:
        raise AgreedError(
            f"{folder} holds checkpoints, but none that is complete on all ranks:\n  "
            + "\n  ".join(skipped)
            + "\n  Bring the missing files back, or start over with another --save."
        )
    return None


def read_checkpoint(folder: Path, *, rank: int, world: int) -> "Checkpoint | str":
    """Return the checkpoint in a folder, or what this rank misses of it; checks sizes only.

    A rank needs only its own files if as many ranks wrote the checkpoint as read it, else all.
    """
    try:
        lists = [_read_list(path) for path in sorted(folder.glob("whole-*.json"))]
    except DamageError as error:
        return str(error)
    if not lists:
        return f"{folder} is unfinished"
    if (step := lists[0].step) != int(folder.name.rpartition("-")[2]):
        return f"{folder} has the list of step-{step}"
    saved_world = lists[0].world
    needed = {rank} if saved_world == world else set(range(saved_world))
    if lacking := needed - {member for file_list in lists for member in file_list.ranks}:
        return (
            f"{folder} lacks what rank {min(lacking)} of {saved_world} wrote; copy it there from "
            "that rank's node"
        )
    files = {name: entry for file_list in lists for name, entry in file_list.files.items()}
    for name, entry in files.items():
        if not (folder / name).is_file() or size(folder / name) != entry.bytes:
            return f"{folder / name} is missing or cut short"
    return Checkpoint(
        folder=folder,
        step=lists[0].step,
        world=saved_world,
        stage=lists[0].stage,
        state=lists[0].state,
        files=files,
    )


def _read_list(path: Path) -> FileList:
    try:
        return from_json(FileList, read_json(path), where="checkpoint")
    except ValueError as error:
        raise DamageError(f"{path} is not the list of a checkpoint ({error})") from error


def _find_damage(seen: "Checkpoint | str", *, ranks: Ranks, disk: Disk | None) -> str | None:
    """Return which file of this rank's share of a checkpoint has changed since it was written."""
    checkpoint = _as_checkpoint(seen)
    members: Sequence[int] = (ranks.rank,) if disk is None else disk.members
    index = members.index(ranks.rank)
    for name, entry in list(checkpoint.files.items())[index :: len(members)]:
        if crc32c(checkpoint.folder / name) != entry.crc32c:
            return f"{checkpoint.folder / name} is damaged: its checksum differs from the list's"
    return None


def check_files(checkpoint: Checkpoint, *, ranks: Ranks, disk: Disk | None) -> None:
    """Check that no file of a checkpoint names what reading it could run; all ranks call this.

    Files that the list lacks are checked too: DeepSpeed finds its files by their names. A checksum
    is no signature: who changes a file can change the list.

    Args:
        checkpoint: as `find_common_checkpoint` returned it.
        ranks: all of them call this.
        disk: as for `find_common_checkpoint`.

    Raises:
        AgreedError: a file does, on some rank.
    """
    members: Sequence[int] = (ranks.rank,) if disk is None else disk.members
    share = torch_files(checkpoint.folder)[members.index(ranks.rank) :: len(members)]

    def check_share() -> None:
        types = deepspeed_types()
        for path in share:
            check(path, types, advice=ADVICE)

    ranks.together(check_share)


def torch_files(folder: Path) -> list[Path]:
    """Return all files of a checkpoint that DeepSpeed might read, in the list or not."""
    return sorted(path for path in folder.rglob("*.pt") if path.is_file())


def _as_checkpoint(seen: "Checkpoint | str") -> Checkpoint:
    assert isinstance(seen, Checkpoint)  # a rank with a problem has reported it before
    return seen
