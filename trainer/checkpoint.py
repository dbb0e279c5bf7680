"""Checkpoints, which are either whole or absent, in a folder that all nodes see.

    RUN/step-200/*.pt                  the files that DeepSpeed wrote
    RUN/step-200/whole-00000.json      the list of these files, written last
    RUN/latest                         step-200, for DeepSpeed's own tools

The list contains the size and crc32c of each file, and the state of the run. A checkpoint is whole
if there is a list and the files match it; a crash leaves a folder without a list. Only the
existence of `latest` matters: it shows that a checkpoint was whole once, so that the run must not
start over. A checkpoint saved while losses were not finite has a `bad_streak`; a run resumes from
such a checkpoint only if the user names it.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import torch

from shards.errors import DamageError, UserError
from shards.records import from_json
from shards.storage.disk import disk_errors_explained
from shards.storage.files import FileEntry, crc32c, read_json, size_if_there
from trainer.distributed import CollectiveError, Ranks, describe_problems
from trainer.torch_file import deepspeed_types, read_torch_file

T = TypeVar("T")

BAD_STREAK = "bad_streak"
"""The key in a run's state for the number of bad steps in a row."""
LATEST = "latest"
"""The file in a run's folder that names the last complete checkpoint."""
_MAX_RANKS = 2**20
_STEP = re.compile(r"step-\d+")
_LIST = "whole-00000.json"
_UNFINISHED = " is unfinished"
VERSION = 3
"""The version of the list. Runs of earlier versions cannot resume: before version 2 dropout masks
were made in a different way, and before version 3 different options were recorded."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FileList:
    """The list of a checkpoint's files, as JSON."""

    version: int
    step: int
    world: int
    """The number of ranks that wrote the files."""
    stage: int
    """The stage of ZeRO."""
    files: Mapping[str, FileEntry]
    """The files by path in the checkpoint's folder."""
    state: Mapping[str, Any]
    """The state of the run."""

    def __post_init__(self) -> None:
        """Check the values that later code relies on.

        Raises:
            ValueError: a value is out of range, or a file is outside the folder.
        """
        for name, low, high in (("step", 0, 2**62), ("world", 1, _MAX_RANKS), ("stage", 0, 3)):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} is {getattr(self, name)}; expected {low} to {high}")
        for name in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\0" in name:
                raise ValueError(f"{name!a} is not inside it")


@dataclass(frozen=True, kw_only=True)
class Checkpoint(FileList):
    """A checkpoint with all its files."""

    folder: Path

    @property
    def tag(self) -> str:
        """DeepSpeed's name for the checkpoint."""
        return self.folder.name

    def part(self, name: str, kind: type[T]) -> T:
        """Return a part of the state, parsed from JSON to a dataclass.

        Raises:
            DamageError: the part is missing, or does not fit the dataclass.
        """
        try:
            return from_json(kind, self.state[name], where=name)
        except (KeyError, ValueError, UserError) as error:
            raise DamageError(
                f"{self.folder} does not contain the state of a run ({str(error).rstrip('.')}): "
                "restore its whole-*.json, or remove the folder."
            ) from error

    @property
    def bad_streak(self) -> int:
        """The number of bad steps in a row that ended with the save or began right after it."""
        streak = self.state.get(BAD_STREAK)
        return max(0, streak) if isinstance(streak, int) else 0


IF_REMOVED = "remove the folder to resume from the checkpoint before, if there is one"
"""Advice about a checkpoint that cannot be read."""


def steps_in(root: Path) -> list[int]:
    """Return the steps that have a folder, complete or not, in ascending order.

    Raises:
        UserError: the folder cannot be listed.
    """
    return sorted(_step_of(root / name) for name in _names_in(root) if _STEP.fullmatch(name))


def _names_in(folder: Path) -> list[str]:
    """Return the names in a folder; none if there is no such folder.

    `Path.glob` would find nothing in a folder that cannot be listed.

    Raises:
        UserError: the folder cannot be listed.
    """
    with disk_errors_explained(folder):
        try:
            return [path.name for path in folder.iterdir()]
        except FileNotFoundError:
            return []


def list_path(folder: Path) -> Path:
    """Return the path of the list in the folder of a checkpoint."""
    return folder / _LIST


class NoCheckpointError(CollectiveError):
    """None of the checkpoints in a folder was ever completed."""


def find_checkpoint(folder: Path, *, ranks: Ranks) -> Checkpoint | None:
    """Return the newest complete checkpoint; None if there are no folders of checkpoints.

    Newer checkpoints that are unfinished or damaged are reported and skipped; so are those that
    were saved while losses were not finite, unless `folder` names one.

    Args:
        folder: the folder of a run, or of one of its checkpoints.
        ranks: all ranks, which call this together; the first rank searches, and each reads a part
            of the files.

    Raises:
        NoCheckpointError: there are only unfinished checkpoints.
        CollectiveError: there are checkpoints, but none can be used; the message lists them.
    """
    named = _named(folder)
    root = folder if named is None else named.parent
    found = ranks.run_on_rank0(lambda: _scan(root, [_step_of(named)] if named else steps_in(root)))
    skipped: list[str] = []
    for seen in found:
        problem = seen if isinstance(seen, str) else _problem_of(seen, named=named, ranks=ranks)
        if not problem:
            assert isinstance(seen, Checkpoint)
            if skipped and ranks.is_first:
                _log.warning("%s\n  %s is used", "\n  ".join(skipped), seen.folder)
            return seen
        skipped.append(problem)
    if not skipped:
        return None
    if all(problem.endswith(_UNFINISHED) for problem in skipped):
        raise NoCheckpointError(f"{folder} contains no usable checkpoint: {'; '.join(skipped)}")
    raise CollectiveError(
        f"{folder} contains checkpoints, but none is usable:\n  "
        + "\n  ".join(skipped)
        + "\n  Restore missing files, or start a new run in another folder."
    )


def usable_checkpoint(path: Path) -> Checkpoint | None:
    """Return the checkpoint that `find_checkpoint` finds for a single process, or None.

    Args:
        path: the path of a run, of one of its checkpoints, or of a file or folder without
            checkpoints.

    Raises:
        UserError: each checkpoint is unfinished, damaged, or was saved while losses were not
            finite.
    """
    named = _named(path)
    if not path.is_dir() or (named is not None and _LIST not in _names_in(named)):
        return None
    alone = Ranks(rank=0, world=1, local_rank=0, device=torch.device("cpu"))
    return find_checkpoint(path, ranks=alone)


def find_later_steps(root: Path, *, after: int) -> list[int]:
    """Return the later steps, the last first, whose checkpoints are neither unfinished nor bad."""
    steps = sorted((step for step in steps_in(root) if step > after), reverse=True)
    found = zip(steps, _scan(root, steps), strict=True)
    return [step for step, seen in found if not _holds_nothing(seen)]


def _named(path: Path) -> Path | None:
    """Return the folder of a checkpoint if a path names one, also by `.` or a link; else None."""
    return next((p for p in (path, path.resolve()) if _STEP.fullmatch(p.name)), None)


def _step_of(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def _scan(root: Path, steps: Sequence[int]) -> "list[Checkpoint | str]":
    """Return the checkpoint of each step, or the problem with it, the last step first."""
    return [read_checkpoint(root / f"step-{step}") for step in sorted(steps, reverse=True)]


def _holds_nothing(seen: "Checkpoint | str") -> bool:
    """Return whether a checkpoint is unfinished or was saved while losses were not finite."""
    return seen.endswith(_UNFINISHED) if isinstance(seen, str) else seen.bad_streak > 0


def read_checkpoint(folder: Path) -> "Checkpoint | str":
    """Return the checkpoint in a folder, or the problem with it; only file sizes are checked.

    Raises:
        UserError: the folder or the size of a file in it cannot be read.
    """
    if _LIST not in _names_in(folder):
        return f"{folder}{_UNFINISHED}" if folder.is_dir() else f"there is no {folder}"
    try:
        content = read_list(folder / _LIST)
    except DamageError as error:
        return str(error)
    if content.step != _step_of(folder):
        return f"{folder} has the list of step-{content.step}"
    for name, entry in content.files.items():
        if size_if_there(folder / name) != entry.bytes:
            return f"{folder / name} is missing or cut short"
    return Checkpoint(folder=folder, **vars(content))


def read_list(path: Path) -> FileList:
    """Return the list of a checkpoint's files that a JSON file contains.

    Raises:
        DamageError: the file is not such a list.
    """
    try:
        content = read_json(path)
        if isinstance(content, dict) and content.get("version") == 1:
            content.pop("ranks", None)  # recorded when nodes could have separate disks
        return from_json(FileList, content, where="checkpoint")
    except ValueError as error:
        raise DamageError(f"{path} is not the list of a checkpoint ({error})") from error


def _problem_of(seen: Checkpoint, *, named: Path | None, ranks: Ranks) -> str:
    """Return why a checkpoint cannot be used; empty if it can. All ranks call this."""
    if seen.bad_streak and named is None:
        return (
            f"{seen.folder} is bad: the loss or the gradients were not finite there (to use it "
            "nevertheless, name that folder)"
        )
    return describe_problems(ranks.gather(_find_damage(seen, ranks=ranks)))


def _find_damage(seen: Checkpoint, *, ranks: Ranks) -> str | None:
    """Return the problem with the first changed file in this rank's part, or None."""
    for name, entry in [*seen.files.items()][ranks.rank :: ranks.world]:
        path = seen.folder / name
        if size_if_there(path) != entry.bytes:
            return f"{path} is missing or cut short"
        if crc32c(path) != entry.crc32c:
            return f"{path} is damaged: its checksum differs from the list's"
    return None


def check_files(checkpoint: Checkpoint, *, ranks: Ranks) -> None:
    """Check that torch can read all files of a checkpoint without running code in them.

    Files that the list lacks are checked too: DeepSpeed finds its files by their names. A checksum
    is not a signature: anyone who changes a file can change the list. No tensor is read.

    Args:
        checkpoint: the result of `find_checkpoint`.
        ranks: all ranks, which call this together; each checks a part.

    Raises:
        CollectiveError: torch refuses a file on some rank.
    """

    def check_part() -> None:
        types = deepspeed_types()
        for path in torch_files(checkpoint.folder)[ranks.rank :: ranks.world]:
            read_torch_file(path, types)

    ranks.run_on_all_ranks(check_part)


def torch_files(folder: Path) -> list[Path]:
    """Return all files of a checkpoint that DeepSpeed might read, whether listed or not."""
    return sorted(path for path in folder.rglob("*.pt") if path.is_file())
