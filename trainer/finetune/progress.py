"""How far a run has come, and its best checkpoint, which is kept next to the newest ones.

RUN/step-150           the newest, pruned as others come
RUN/best/step-100      the best: the same files under a second name, so it costs no room or time
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
    """The best evaluation so far."""

    epoch: int
    step: int
    metrics: Mapping[str, float]
    """The first one decides: the more the better."""

    def folder(self, run: Path) -> Path:
        """Return where its checkpoint is in a run's folder."""
        return run / "best" / f"step-{self.step}"


@dataclass(frozen=True, kw_only=True)
class FinetuneProgress:
    """The progress that the checkpoints of a run record."""

    evaluated: int = 0
    """The last epoch that was evaluated; 0: none."""
    bests: tuple[BestEpoch, ...] = ()
    """The best epoch, if one was evaluated."""

    @property
    def best(self) -> BestEpoch | None:
        """The best epoch so far."""
        return self.bests[-1] if self.bests else None


def better_epoch(best: BestEpoch | None, other: BestEpoch) -> BestEpoch | None:
    """Return the better one, the earlier of equals; one without a finite figure never counts."""
    figure, *_ = other.metrics.values()
    if not math.isfinite(figure):
        return best
    return other if best is None or figure > next(iter(best.metrics.values())) else best


def keep_best(run: Path, best: BestEpoch, ranks: Ranks) -> bool:
    """Make a checkpoint the best one, once it is whole; return whether it is now.

    All ranks call this. Wherever a crash interrupts it, there is a best one that is whole: the
    list of the new one's files comes last, and the former best goes after that.

    Raises:
        CollectiveError: it could not be kept.
    """
    source, target = run / f"step-{best.step}", best.folder(run)

    def keep_here() -> bool:
        with disk_errors_explained(target):
            if not list_path(target).exists() and list_path(source).exists():
                _replace(source, target)
            return list_path(target).exists()

    return ranks.run_on_rank0(keep_here)


def _replace(source: Path, target: Path) -> None:
    """Make a checkpoint the best one, and remove all others that are there."""
    shutil.rmtree(target, ignore_errors=True)
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    for path in sorted(paths, key=lambda path: path == list_path(source)):
        _link(path, target / path.relative_to(source))
    for other in target.parent.glob("step-*"):
        if other != target:
            shutil.rmtree(other)


def _link(path: Path, target: Path) -> None:
    """Link a file under a second name; copy it where the file system has no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
