"""The progress of a run, and its best checkpoint, which is kept next to the newest checkpoints.

RUN/step-150           the newest checkpoint, removed when newer ones are complete
RUN/best/step-100      the best checkpoint, as hard links to the same files, which take no room
"""

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shards.storage.disk import disk_errors_explained
from trainer.checkpoint import list_path
from trainer.distributed import Ranks


@dataclass(frozen=True, kw_only=True)
class BestEpoch:
    """An epoch with the best evaluation so far."""

    epoch: int
    step: int
    metrics: Mapping[str, float]
    """The figures by name; the first figure decides, and higher is better."""

    def folder(self, run: Path) -> Path:
        """Return the folder of the checkpoint in a run's folder."""
        return run / "best" / f"step-{self.step}"


@dataclass(frozen=True, kw_only=True)
class FinetuneProgress:
    """The progress of a run, which its checkpoints record."""

    evaluated: int = 0
    """The last evaluated epoch; 0 if none was evaluated."""
    bests: tuple[BestEpoch, ...] = ()
    """The best epoch; empty if none was evaluated."""

    @property
    def best(self) -> BestEpoch | None:
        """The best epoch so far."""
        return self.bests[-1] if self.bests else None


def better_epoch(best: BestEpoch | None, other: BestEpoch) -> BestEpoch | None:
    """Return the better epoch, `best` if equal; `other` counts only if its figure is finite."""
    figure, *_ = other.metrics.values()
    if not math.isfinite(figure):
        return best
    return other if best is None or figure > next(iter(best.metrics.values())) else best


def keep_best(run: Path, best: BestEpoch, ranks: Ranks) -> bool:
    """Make a complete checkpoint the best one; return whether it is the best one now.

    All ranks call this. A crash at any moment leaves a complete best checkpoint, because the list
    of the new checkpoint's files is linked last, and the former best checkpoint is removed after
    that.

    Raises:
        CollectiveError: the checkpoint could not be kept.
    """
    source, target = run / f"step-{best.step}", best.folder(run)

    def keep_here() -> bool:
        with disk_errors_explained(target):
            if not list_path(target).exists() and list_path(source).exists():
                _replace(source, target)
            return list_path(target).exists()

    return ranks.run_on_rank0(keep_here)


def _replace(source: Path, target: Path) -> None:
    """Link a checkpoint as the best one, and remove the former best checkpoints."""
    shutil.rmtree(target, ignore_errors=True)
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    for path in sorted(paths, key=lambda path: path == list_path(source)):
        _link(path, target / path.relative_to(source))
    for other in target.parent.glob("step-*"):
        if other != target:
            shutil.rmtree(other)


def _link(path: Path, target: Path) -> None:
    """Make a hard link to a file; copy it if the file system has no hard links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
