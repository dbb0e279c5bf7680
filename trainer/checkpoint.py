"""Checkpoints: whole or not there, on one disk for all nodes or on each node's own.

    RUN/step-200/*.pt                  what DeepSpeed wrote: a node's ranks, or all ranks
    RUN/step-200/whole-00000.json      the list of them, written last, by the first of those ranks
    RUN/latest                         step-200, for DeepSpeed's own tools; never read here

The list has size and crc32c of each file, the ranks that wrote them, and the state of the run. A
crash leaves a folder without a list. Nodes may have got to different steps by then: at start all
ranks agree on the newest step that every one of them holds whole.
"""

import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shards.errors import DamageError, UserError
from shards.records import from_json, to_json
from shards.storage.files import FileEntry, atomic_write, crc32c, read_json, size, write_json
from trainer.disk import Disk
from trainer.ranks import AgreedError, Ranks, tell

_VERSION = 1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Part:
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
    """Of the run, the same in all parts."""


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
    """Write a checkpoint; when this returns it is whole on all nodes, and older ones are gone.

    Raises:
        UserError: a disk is full, or a file cannot be written; the checkpoints before are kept.
    """
    here = disk.folder / f"step-{step}"
    if ranks.rank == disk.leader:
        _discard(here)
    ranks.barrier()
    try:
        engine.save_checkpoint(
            str(disk.folder), here.name, client_state={"step": step}, save_latest=False
        )
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"{here} could not be written ({error}): make room on its disk and give the same "
            "command again; it goes on from the checkpoint before."
        ) from error
    ranks.together(lambda: None)  # a rank whose disk is full has left by now
    files = _entries(here, disk=disk, ranks=ranks)
    if ranks.rank == disk.leader:
        part = Part(
            version=_VERSION,
            step=step,
            ranks=disk.members,
            world=ranks.world,
            stage=int(engine.zero_optimization_stage()),
            files=files,
            state=state,
        )
        write_json(here / f"whole-{ranks.rank:05d}.json", to_json(part))
        with atomic_write(disk.folder / "latest") as handle:
            handle.write(here.name.encode())
    ranks.barrier()
    if ranks.rank == disk.leader:
        _prune(disk.folder, step=step, keep=keep, ranks=ranks)


def _prune(folder: Path, *, step: int, keep: int, ranks: Ranks) -> None:
    """Remove what is older than the last `keep` checkpoints up to a step that was just written.

    Only whole ones count. Later folders, which a run left unfinished or damaged before it went
    back to an earlier step, are left alone until it comes to their step again.
    """
    older = [old for old in _steps(folder) if old < step]
    whole = [
        old
        for old in older
        if isinstance(look(folder / f"step-{old}", rank=ranks.rank, world=ranks.world), Checkpoint)
    ]
    first = [*whole, step][-keep:][0]
    for old in older:
        if old < first:
            _discard(folder / f"step-{old}")


def _entries(here: Path, *, disk: Disk, ranks: Ranks) -> dict[str, FileEntry]:
    """Return the files of a new checkpoint, brought to the disk; the ranks share the reading."""
    names = sorted(path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_file())
    place = disk.members.index(ranks.rank)
    mine = {name: _entry(here / name) for name in names[place :: len(disk.members)]}
    parts = ranks.gather(mine)
    found = {name: entry for rank in disk.members for name, entry in parts[rank].items()}
    return dict(sorted(found.items()))


def _entry(path: Path) -> FileEntry:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return FileEntry(bytes=size(path), crc32c=crc32c(path))


def _discard(here: Path) -> None:
    """Remove a checkpoint, its lists first, so that a crash on the way leaves no list."""
    for whole in here.glob("whole-*.json"):
        whole.unlink()
    shutil.rmtree(here, ignore_errors=True)


def _steps(folder: Path) -> list[int]:
    """Return the steps of which there is a folder, whole or not, ascending."""
    names = (re.fullmatch(r"step-(\d+)", path.name) for path in folder.glob("step-*"))
    return sorted(int(name[1]) for name in names if name)


def agree(folder: Path, *, ranks: Ranks, disk: Disk | None) -> Checkpoint | None:
    """Return the newest checkpoint in a folder that all ranks hold whole, None if there is none.

    Newer ones that some rank lacks, or has damaged, are told of and left out.

    Args:
        folder: of a run, or of one of its checkpoints.
        ranks: all of them call this.
        disk: who sees the folder, to share the reading of checksums; None: read all.

    Raises:
        AgreedError: there are checkpoints, but none that every rank holds whole; lists them.
    """
    single = re.fullmatch(r"step-(\d+)", folder.name)
    root = folder.parent if single else folder
    wanted = [int(single[1])] if single else _steps(root)
    found = {
        step: look(root / f"step-{step}", rank=ranks.rank, world=ranks.world) for step in wanted
    }
    everywhere = ranks.gather({s: c if isinstance(c, str) else None for s, c in found.items()})
    told: list[str] = []
    for step in sorted({step for rank in everywhere for step in rank}, reverse=True):
        problems = [rank.get(step, f"{root} has no step-{step}") for rank in everywhere]
        if not any(problems):
            problems = ranks.gather(_damage(found[step], ranks=ranks, disk=disk))
        if not any(problems):
            for line in told if ranks.is_first else ():
                _log.warning("%s", line)
            return _as_checkpoint(found[step])
        told.append(f"step-{step} is left out: {tell(problems)}")
    if told:
        raise AgreedError(
            f"{folder} holds checkpoints, but none that is whole on all ranks:\n"
            + "\n".join(told)
            + "\nBring the missing files back, or start anew with another --save."
        )
    return None


def look(here: Path, *, rank: int, world: int) -> "Checkpoint | str":
    """Return the checkpoint in a folder, or what this rank misses of it; sizes are looked at only.

    A rank needs its own part if as many ranks wrote it as read it, else all parts.
    """
    try:
        parts = [_read(path) for path in sorted(here.glob("whole-*.json"))]
    except DamageError as error:
        return str(error)
    if not parts:
        return f"{here} is unfinished"
    saved = parts[0].world
    needed = {rank} if saved == world else set(range(saved))
    if lacking := needed - {member for part in parts for member in part.ranks}:
        return (
            f"{here} lacks what rank {min(lacking)} of {saved} wrote; copy it there from that "
            "rank's node"
        )
    files = {name: entry for part in parts for name, entry in part.files.items()}
    for name, entry in files.items():
        if not (here / name).is_file() or size(here / name) != entry.bytes:
            return f"{here / name} is missing or cut short"
    return Checkpoint(
        folder=here,
        step=parts[0].step,
        world=saved,
        stage=parts[0].stage,
        state=parts[0].state,
        files=files,
    )


def _read(path: Path) -> Part:
    try:
        return from_json(Part, read_json(path), where="checkpoint")
    except ValueError as error:
        raise DamageError(f"{path} is no list of a checkpoint ({error})") from error


def _damage(found: "Checkpoint | str", *, ranks: Ranks, disk: Disk | None) -> str | None:
    """Return which of this rank's share of a checkpoint's files is not what it was."""
    checkpoint = _as_checkpoint(found)
    members: Sequence[int] = (ranks.rank,) if disk is None else disk.members
    place = members.index(ranks.rank)
    for name, entry in list(checkpoint.files.items())[place :: len(members)]:
        if crc32c(checkpoint.folder / name) != entry.crc32c:
            return f"{checkpoint.folder / name} is damaged: its checksum is not as it was written"
    return None


def _as_checkpoint(found: "Checkpoint | str") -> Checkpoint:
    assert isinstance(found, Checkpoint)  # a rank with a problem has said so before
    return found
