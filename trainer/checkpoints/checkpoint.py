"""Checkpoints: complete or absent, on one disk for all nodes or on each node's own.

    RUN/step-200/*.pt                  what DeepSpeed wrote: one node's ranks, or all ranks
    RUN/step-200/whole-00000.json      their list, written last, by the first of those ranks
    RUN/latest                         step-200, for DeepSpeed's own tools; never read here

The list holds the size and crc32c of each file, the ranks that wrote them, and the state of the
run. A crash leaves a folder without a list, and may leave nodes at different steps; at the start
all ranks agree on the newest step that is complete for every one of them. What was saved while
losses were not finite says so (`bad_streak`), and nothing resumes from it unless it is named.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from shards.errors import DamageError, UserError
from shards.records import from_json
from shards.storage.files import FileEntry, crc32c, read_json, size
from trainer.checkpoints.disk import Disk
from trainer.checkpoints.torch_file import check, deepspeed_types
from trainer.ranks import AgreedError, Ranks, describe_problems

ADVICE = (
    "This trainer writes no such file: somebody changed it. Bring it back as it was, or remove its "
    "folder, and the run resumes from an earlier checkpoint, if there is one."
)
"""What to do about a file that could run code."""
BAD_STREAK = "bad_streak"
"""In the state of a run: how many losses in a row were not finite; 0: the last one was."""
_MOST_NAMED = 4
"""Steps that a message lists."""
_MOST_RANKS = 2**20
_STEP = re.compile(r"step-\d+")
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

    @property
    def bad_streak(self) -> int:
        """How many losses in a row, up to when it was saved or right after, were not finite."""
        streak = self.state.get(BAD_STREAK)
        return max(0, streak) if isinstance(streak, int) else 0


def steps_in(root: Path) -> list[int]:
    """Return the steps that have a folder, complete or not, ascending."""
    return sorted(_step_of(path) for path in root.glob("step-*") if _STEP.fullmatch(path.name))


class NothingSavedError(AgreedError):
    """Of the checkpoints in a folder none was ever finished, or none with finite losses."""


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What one rank sees of a step."""

    problem: str | None
    """Why it is not complete here."""
    is_unfinished: bool = False
    """Whether there is a folder for it without any list."""
    bad_streak: int = 0


def find_common_checkpoint(folder: Path, *, ranks: Ranks, disk: Disk | None) -> Checkpoint | None:
    """Return the newest checkpoint that is complete for all ranks, None if there are none at all.

    Newer ones that some rank lacks, or has damaged, are reported and skipped; so are those that
    were saved while losses were not finite, unless `folder` names one.

    Args:
        folder: of a run, or of one of its checkpoints.
        ranks: all of them call this.
        disk: who sees the folder, to share the reading of checksums; None: read everything.

    Raises:
        NothingSavedError: there are only unfinished checkpoints, or such without finite losses.
        AgreedError: there are checkpoints, but none is complete for every rank; lists them.
    """
    single = _named(folder)
    root = folder if single is None else single.parent
    steps = steps_in(root) if single is None else [_step_of(single)]
    own = _read_steps(root, steps, ranks=ranks)
    seen = _seen_by_all(root, own, ranks=ranks)
    skipped: list[str] = []
    for step, sights in seen.items():
        problems = [sight.problem for sight in sights]
        streak = max(sight.bad_streak for sight in sights)
        if not any(problems) and streak and not single:
            skipped.append(
                f"step-{step} is skipped: {streak} losses in a row were not finite there; only "
                f"--resume {root / f'step-{step}'} would resume from it"
            )
            continue
        if not any(problems):
            problems = ranks.gather(_find_damage(own[step], ranks=ranks, disk=disk))
        if not any(problems):
            if skipped and ranks.is_first:
                _log.warning("%s", "\n  ".join(skipped))
            return _as_checkpoint(own[step])
        skipped.append(f"step-{step} is skipped: {describe_problems(problems)}")
    if seen and all(_holds_nothing(sights) for sights in seen.values()):
        raise NothingSavedError(
            f"{root} holds no checkpoint to resume from: {'; '.join(_nothings(seen))}"
        )
    if skipped:
        raise AgreedError(
            f"{folder} holds checkpoints, but none that is complete on all ranks:\n  "
            + "\n  ".join(skipped)
            + "\n  Bring the missing files back, or start over with another --save."
        )
    return None


def _named(path: Path) -> Path | None:
    """Return the folder of a checkpoint that a path names, be it by `.` or a link, if it does."""
    return next((p for p in (path, path.resolve()) if _STEP.fullmatch(p.name)), None)


def _step_of(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def find_later_steps(root: Path, *, after: int, ranks: Ranks) -> tuple[list[int], str]:
    """Return the steps after one whose folder holds something, and what the other folders hold.

    All ranks call this.
    """
    own = _read_steps(root, [step for step in steps_in(root) if step > after], ranks=ranks)
    seen = _seen_by_all(root, own, ranks=ranks)
    steps = [step for step, sights in seen.items() if not _holds_nothing(sights)]
    return steps, "; ".join(_nothings(seen))


def _read_steps(root: Path, steps: Sequence[int], *, ranks: Ranks) -> dict[int, "Checkpoint | str"]:
    return {
        step: read_checkpoint(root / f"step-{step}", rank=ranks.rank, world=ranks.world)
        for step in steps
    }


def _seen_by_all(
    root: Path, own: Mapping[int, "Checkpoint | str"], *, ranks: Ranks
) -> dict[int, list[Sight]]:
    """Return what each rank sees of each step, the last step first; all ranks call this."""
    by_rank = ranks.gather({step: _sight(root / f"step-{step}", own[step]) for step in own})
    steps = sorted({step for sights in by_rank for step in sights}, reverse=True)
    return {
        step: [sights.get(step, Sight(problem=f"{root} has no step-{step}")) for sights in by_rank]
        for step in steps
    }


def _sight(folder: Path, seen: "Checkpoint | str") -> Sight:
    if isinstance(seen, Checkpoint):
        return Sight(problem=None, bad_streak=seen.bad_streak)
    is_unfinished = folder.is_dir() and not any(folder.glob("whole-*.json"))
    return Sight(problem=seen, is_unfinished=is_unfinished)


def _holds_nothing(sights: Sequence[Sight]) -> bool:
    """Return whether a checkpoint was never finished, or is none to resume from.

    The ranks of a node are not all done at the same moment: one that found no time for its list
    tells that the run did not go on from there.
    """
    if any(sight.is_unfinished for sight in sights):
        return True
    return all(sight.problem is None for sight in sights) and any(s.bad_streak for s in sights)


def _nothings(seen: Mapping[int, Sequence[Sight]]) -> Iterator[str]:
    """Yield what is told of the steps that hold nothing to resume from."""
    steps = [step for step, sights in seen.items() if _holds_nothing(sights)]
    unfinished = [step for step in steps if any(sight.is_unfinished for sight in seen[step])]
    bad = [step for step in steps if step not in unfinished]
    if unfinished:
        yield f"{_shown(unfinished)} {'is' if len(unfinished) == 1 else 'are'} unfinished"
    if bad:
        yield f"{_shown(bad)} {'has' if len(bad) == 1 else 'have'} losses that are not finite"


def _shown(steps: Sequence[int]) -> str:
    shown = ", ".join(f"step-{step}" for step in sorted(steps)[:_MOST_NAMED])
    return f"{shown} and {len(steps) - _MOST_NAMED} more" if len(steps) > _MOST_NAMED else shown


def read_checkpoint(folder: Path, *, rank: int, world: int) -> "Checkpoint | str":
    """Return the checkpoint in a folder, or what this rank misses of it; checks sizes only.

    A rank needs only its own files if as many ranks wrote the checkpoint as read it, else all.
    """
    try:
        lists = [read_list(path) for path in sorted(folder.glob("whole-*.json"))]
    except DamageError as error:
        return str(error)
    if not lists:
        return f"{folder} is unfinished"
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


def usable_checkpoint(path: Path) -> Checkpoint | None:
    """Return a run's newest checkpoint that is whole and good, or the one that is named.

    Newer ones are reported and skipped.

    Args:
        path: of a run, of one of its checkpoints, or of anything else, which has none.

    Raises:
        UserError: each is unfinished, damaged, or was saved while losses were not finite.
    """
    if not path.is_dir():
        return None
    named = _named(path)
    if named is not None and not any(named.glob("whole-*.json")):
        return None
    steps = [path / f"step-{step}" for step in reversed(steps_in(path))]
    skipped: list[str] = []
    for folder in steps if named is None else [named]:
        # One rank of as many as wrote it would need its own files only; -1 is none of them.
        seen = read_checkpoint(folder, rank=0, world=-1)
        problem = seen if isinstance(seen, str) else _damage_among(seen.files, seen.folder)
        if problem is None and named is None and _as_checkpoint(seen).bad_streak:
            problem = (
                f"{folder} was saved while losses were not finite and has most likely diverged (to "
                "use it nevertheless, give that folder)"
            )
        if problem is None:
            if skipped:
                _log.warning("%s is used: %s", folder, "; ".join(skipped))
            return _as_checkpoint(seen)
        skipped.append(problem)
    if skipped:
        raise UserError(f"{path} holds no checkpoint that can be used: {'; '.join(skipped)}.")
    return None


def _damage_among(files: Mapping[str, FileEntry], folder: Path) -> str | None:
    """Return which of some files of a checkpoint has changed since it was written."""
    for name, entry in files.items():
        if crc32c(folder / name) != entry.crc32c:
            return f"{folder / name} is damaged: its checksum differs from the list's"
    return None


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
    checkpoint = _as_checkpoint(seen)
    members: Sequence[int] = (ranks.rank,) if disk is None else disk.members
    share = list(checkpoint.files.items())[members.index(ranks.rank) :: len(members)]
    return _damage_among(dict(share), checkpoint.folder)


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
