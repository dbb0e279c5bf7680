"""The best checkpoint of a run, kept beside its newest ones.

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
from trainer.checkpoints.disk import Disk
from trainer.ranks import Ranks

FOLDER = "best"
_LISTS = "whole-*.json"
"""They are written when a checkpoint is whole."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best evaluation so far."""

    epoch: int
    step: int
    metrics: Mapping[str, float]
    """The first one decides."""

    @property
    def figure(self) -> float:
        """What decides; the more the better."""
        return next(iter(self.metrics.values()))


def better(best: Best | None, other: Best) -> Best | None:
    """Return the better one; the earlier of equals. What has no finite figure never counts."""
    if not math.isfinite(other.figure):
        return best
    return other if best is None or other.figure > best.figure else best


def keep(disk: Disk, step: int, ranks: Ranks) -> bool:
    """Make the checkpoint of a step the best one, once it is whole; return whether it is now.

    All ranks call this. Wherever a crash interrupts it, there is a best one that is whole: the
    list of the new one's files comes last, and the former best goes after that.

    Raises:
        AgreedError: it could not be kept on the disk of some rank.
    """
    source = disk.folder / f"step-{step}"
    target = disk.folder / FOLDER / source.name

    def keep_here() -> bool:
        if ranks.rank != disk.leader:
            return True
        with disk_errors_explained(target):
            if not list(target.glob(_LISTS)) and list(source.glob(_LISTS)):
                _replace(source, target)
            return any(target.glob(_LISTS))

    return all(ranks.gather(ranks.together(keep_here)))


def _replace(source: Path, target: Path) -> None:
    """Make a checkpoint the best one, in the place of all that are there."""
    shutil.rmtree(target, ignore_errors=True)
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    for path in sorted(paths, key=lambda path: path.match(_LISTS)):
        _link(path, target / path.relative_to(source))
    for other in target.parent.glob("step-*"):
        if other != target:
            shutil.rmtree(other)


def _link(path: Path, target: Path) -> None:
    """Give a file a second name; copy it where the file system has no such thing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)


def folder_of(run: Path, best: Best) -> Path:
    """Return where the best checkpoint of a run lies."""
    return run / FOLDER / f"step-{best.step}"
