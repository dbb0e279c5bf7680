"""Checkpoints: whole or absent, on one disk for all nodes or on each node's own.

    RUN/step-200/*.pt                  what DeepSpeed wrote: one node's ranks, or all ranks
    RUN/step-200/whole-00000.json      their list, written last, by the first of those ranks
    RUN/latest                         step-200, for DeepSpeed's own tools

The list holds the size and crc32c of each file, the ranks that wrote them, and the state of the
run. A checkpoint is whole if there are lists of all ranks, and the files are as they say. A crash
leaves a folder without a list, and may leave nodes at different steps; at the start all ranks agree
on the newest step that is whole for every one of them. Of `latest` only its existence counts: it
shows that a checkpoint was whole once, so that the run must not begin anew. What was saved while
losses were not finite says so (`bad_streak`), and nothing resumes from it unless it is named.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import torch

from shards.errors import DamageError, UserError
from shards.records import from_json
from shards.storage.disk import disk_errors_explained
from shards.storage.files import FileEntry, crc32c, read_json, size_if_there
from trainer.checkpoints.disk import Disk, share_of
from trainer.checkpoints.torch_file import deepspeed_types, read
from trainer.ranks import AgreedError, Ranks, describe_problems

T = TypeVar("T")

BAD_STREAK = "bad_streak"
"""In the state of a run: how many losses in a row were not finite; 0: the last one was."""
LATEST = "latest"
"""The file in a run's folder that names the last checkpoint that became whole."""
_MOST_RANKS = 2**20
_STEP = re.compile(r"step-\d+")
_LISTS = "whole-*.json"
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

    def part(self, name: str, kind: type[T]) -> T:
        """Return a part of the state, which is JSON of a dataclass.

        Raises:
            DamageError: it is missing, or of another form.
        """
        try:
            return from_json(kind, self.state[name], where=name)
        except (KeyError, ValueError, UserError) as error:
            raise DamageError(
                f"{self.folder} does not hold the state of a run ({str(error).rstrip('.')}): bring "
                "its whole-*.json back as it was, or remove the folder."
            ) from error

    @property
    def bad_streak(self) -> int:
        """How many losses in a row, up to when it was saved or right after, were not finite."""
        streak = self.state.get(BAD_STREAK)
        return max(0, streak) if isinstance(streak, int) else 0


def steps_in(root: Path) -> list[int]:
    """Return the steps that have a folder, complete or not, ascending.

    Raises:
        UserError: the folder cannot be listed.
    """
    return sorted(_step_of(root / name) for name in _names_in(root) if _STEP.fullmatch(name))


def _names_in(folder: Path) -> list[str]:
    """Return the names in a folder, none if there is no such folder.

    `Path.glob` would find nothing in a folder that cannot be listed.

    Raises:
        UserError: the folder cannot be listed.
    """
    with disk_errors_explained(folder):
        try:
            return [path.name for path in folder.iterdir()]
        except FileNotFoundError:
            return []


def _lists_in(folder: Path) -> list[Path]:
    """Return the lists of files in the folder of a checkpoint, as `_names_in` does."""
    return sorted(folder / name for name in _names_in(folder) if fnmatchcase(name, _LISTS))


def was_saved(root: Path) -> bool:
    """Return whether a checkpoint in a run's folder was ever whole."""
    return (root / LATEST).exists()


class NoCheckpointError(AgreedError):
    """Of the checkpoints in a folder none was ever finished, or none with finite losses."""


@dataclass(frozen=True, kw_only=True)
class RankView:
    """What one rank sees of the checkpoint of a step."""

    problem: str | None
    """Why it is not complete here."""
    is_unfinished: bool
    """Whether there is a folder for it without any list."""
    bad_streak: int


def find_common_checkpoint(folder: Path, *, ranks: Ranks, disk: Disk | None) -> Checkpoint | None:
    """Return the newest checkpoint that is complete for all ranks, None if there are none at all.

    Newer ones that some rank lacks, or has damaged, are reported and skipped; so are those that
    were saved while losses were not finite, unless `folder` names one.

    Args:
        folder: of a run, or of one of its checkpoints.
        ranks: all of them call this.
        disk: who sees the folder, to share the reading of checksums; None: read everything.

    Raises:
        NoCheckpointError: there are only unfinished checkpoints, or such without finite losses.
        AgreedError: there are checkpoints, but none is complete for every rank; lists them.
    """
    named = _named(folder)
    root = folder if named is None else named.parent
    steps = [_step_of(named)] if named else ranks.together(lambda: steps_in(root))
    own, views = _seen_by_all(root, steps, ranks=ranks)
    skipped: list[str] = []
    for step, seen in own.items():
        problem = describe_problems([view.problem for view in views[step]])
        streak = max(view.bad_streak for view in views[step])
        if not problem and streak and named is None:
            problem = (
                f"{root / f'step-{step}'} is bad: {streak} losses in a row were not finite there "
                "(to use it nevertheless, name that folder)"
            )
        if not problem:
            problem = describe_problems(ranks.gather(_find_damage(seen, ranks=ranks, disk=disk)))
        if not problem:
            assert isinstance(seen, Checkpoint)  # a rank without it has a problem
            if skipped and ranks.is_first:
                _log.warning("%s\n  %s is used", "\n  ".join(skipped), seen.folder)
            return seen
        skipped.append(problem)
    if not skipped:
        return None
    if all(_holds_nothing(seen) for seen in views.values()):
        raise NoCheckpointError(f"{folder} holds no checkpoint to use: {'; '.join(skipped)}")
    raise AgreedError(
        f"{folder} holds checkpoints, but none that is complete on all ranks:\n  "
        + "\n  ".join(skipped)
        + "\n  Bring the missing files back as they were, or start anew in another folder."
    )


def usable_checkpoint(path: Path) -> Checkpoint | None:
    """Return what `find_common_checkpoint` finds for a process that needs all of a checkpoint.

    Args:
        path: of a run, of one of its checkpoints, or of anything else, which has none.

    Raises:
        UserError: each is unfinished, damaged, or was saved while losses were not finite.
    """
    named = _named(path)
    if not path.is_dir() or (named is not None and not _lists_in(named)):
        return None
    alone = Ranks(rank=0, world=1, local_rank=0, device=torch.device("cpu"))
    return find_common_checkpoint(path, ranks=alone, disk=None)


def find_later_steps(root: Path, *, after: int, ranks: Ranks) -> list[int]:
    """Return the steps after one whose folder holds something to resume from, the last one first.

    All ranks call this.
    """
    later = [step for step in ranks.together(lambda: steps_in(root)) if step > after]
    _, views = _seen_by_all(root, later, ranks=ranks)
    return [step for step, seen in views.items() if not _holds_nothing(seen)]


def _named(path: Path) -> Path | None:
    """Return the folder of a checkpoint that a path names, be it by `.` or a link, if it does."""
    return next((p for p in (path, path.resolve()) if _STEP.fullmatch(p.name)), None)


def _step_of(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def _seen_by_all(
    root: Path, steps: Sequence[int], *, ranks: Ranks
) -> tuple[dict[int, "Checkpoint | str"], dict[int, tuple[RankView, ...]]]:
    """Return this rank's checkpoints and what each rank sees of them, by step, the last one first.

    All ranks call this, with the steps that each of them has.
    """
    known = sorted({step for own in ranks.gather(steps) for step in own}, reverse=True)
    rank, world = ranks.rank, ranks.world
    own = ranks.together(
        lambda: {s: read_checkpoint(root / f"step-{s}", rank=rank, world=world) for s in known}
    )
    gathered = ranks.gather([_view(root / f"step-{step}", seen) for step, seen in own.items()])
    return own, dict(zip(known, zip(*gathered, strict=True), strict=True))


def _view(folder: Path, seen: "Checkpoint | str") -> RankView:
    if isinstance(seen, Checkpoint):
        return RankView(problem=None, is_unfinished=False, bad_streak=seen.bad_streak)
    return RankView(problem=seen, is_unfinished=seen == _unfinished(folder), bad_streak=0)


def _unfinished(folder: Path) -> str:
    return f"{folder} is unfinished"


def _holds_nothing(views: Sequence[RankView]) -> bool:
    """Return whether a checkpoint was never finished, or is none to resume from.

    The ranks of a node are not all done at the same moment: one that found no time for its list
    tells that the run did not go on from there.
    """
    if any(view.is_unfinished for view in views):
        return True
    return not any(view.problem for view in views) and any(view.bad_streak for view in views)


def read_checkpoint(folder: Path, *, rank: int, world: int) -> "Checkpoint | str":
    """Return the checkpoint in a folder, or what this rank misses of it; checks sizes only.

    A rank needs only its own files if as many ranks wrote the checkpoint as read it, else all.

    Raises:
        UserError: the folder cannot be listed, or a file in it cannot be looked at.
    """
    try:
        lists = [read_list(path) for path in _lists_in(folder)]
    except DamageError as error:
        return str(error)
    if not lists:
        return _unfinished(folder) if folder.is_dir() else f"there is no {folder}"
    if (step := lists[0].step) != _step_of(folder):
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
        if size_if_there(folder / name) != entry.bytes:
            return f"{folder / name} is missing or cut short"
    return Checkpoint(
        folder=folder,
        step=lists[0].step,
        world=saved_world,
        stage=lists[0].stage,
        state=lists[0].state,
        files=files,
    )


def read_list(path: Path) -> FileList:
    """Return a list of files.

    Raises:
        DamageError: it is none.
    """
    try:
        return from_json(FileList, read_json(path), where="checkpoint")
    except ValueError as error:
        raise DamageError(f"{path} is not the list of a checkpoint ({error})") from error


def _find_damage(seen: "Checkpoint | str", *, ranks: Ranks, disk: Disk | None) -> str | None:
    """Return which file of this rank's share of a checkpoint has changed since it was written."""
    assert isinstance(seen, Checkpoint)  # a rank without it has a problem
    for name, entry in share_of([*seen.files.items()], disk, ranks):
        if crc32c(seen.folder / name) != entry.crc32c:
            return f"{seen.folder / name} is damaged: its checksum differs from the list's"
    return None


def check_files(checkpoint: Checkpoint, *, ranks: Ranks, disk: Disk | None) -> None:
    """Check that torch reads all files of a checkpoint without running anything in them.

    Files that the list lacks are checked too: DeepSpeed finds its files by their names. A checksum
    is no signature: who changes a file can change the list. No tensor is read.

    Args:
        checkpoint: as `find_common_checkpoint` returned it.
        ranks: all of them call this.
        disk: as for `find_common_checkpoint`.

    Raises:
        AgreedError: it refuses one, on some rank.
    """

    def check_share() -> None:
        types = deepspeed_types()
        for path in share_of(torch_files(checkpoint.folder), disk, ranks):
            read(path, types)

    ranks.together(check_share)


def torch_files(folder: Path) -> list[Path]:
    """Return all files of a checkpoint that DeepSpeed might read, in the list or not."""
    return sorted(path for path in folder.rglob("*.pt") if path.is_file())
