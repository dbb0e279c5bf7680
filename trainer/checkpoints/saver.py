"""Saving a run: the ranks write their files, agree that all are written, and then comes the list.

A crash at any moment before the list costs no more than this checkpoint. Older ones go when it is
complete and a later loss was finite: until then nobody knows whether its weights are any good.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.records import to_json
from shards.storage.disk import disk_errors_explained
from shards.storage.files import FileEntry, atomic_write, crc32c, make_folder, size, write_json
from trainer.checkpoints.checkpoint import (
    LATEST,
    VERSION,
    Checkpoint,
    FileList,
    list_path,
    read_checkpoint,
    read_list,
    steps_in,
)
from trainer.checkpoints.writer import CheckpointWriter
from trainer.distributed import Ranks


class Saver:
    """Writes the checkpoints of a run; all ranks call its methods alike."""

    def __init__(self, engine: Any, folder: Path, *, keep: int, ranks: Ranks) -> None:
        """Take over what an engine writes.

        Args:
            engine: of DeepSpeed.
            folder: where the run is saved.
            keep: complete checkpoints that are kept.
            ranks: of the run.
        """
        self._engine = engine
        self._writer = CheckpointWriter(engine)
        self._root = folder
        self._keep = keep
        self._ranks = ranks
        self._last: int | None = None
        """The step saved last, unless what is older has been pruned."""

    def save(self, *, step: int, state: Mapping[str, Any]) -> None:
        """Save a checkpoint, and remove those before it that were saved while losses were bad.

        Args:
            step: that was taken last.
            state: of the run, with the `BAD_STREAK` of its losses.

        Raises:
            CollectiveError: it cannot be written; earlier ones are kept.
        """
        folder = self._folder(step)
        self._ranks.run_on_rank0(lambda: _make_empty(folder))
        self._engine.save_checkpoint(
            str(self._root), folder.name, client_state={"step": step}, save_latest=False
        )
        files = self._gathered(self._ranks.run_on_all_ranks(lambda: self._written(folder)))
        files |= self._gathered(self._ranks.run_on_all_ranks(lambda: self._others(folder, files)))
        content = FileList(
            version=VERSION,
            step=step,
            world=self._ranks.world,
            stage=int(self._engine.zero_optimization_stage()),
            files=dict(sorted(files.items())),
            state=state,
        )
        self._ranks.run_on_rank0(lambda: self._complete(folder, content))
        self._last = step
        self._remove_older(step, only_bad=True)

    def prune(self) -> None:
        """Remove what is older than the last checkpoints to keep; a later loss was finite."""
        newest, self._last = self._last, None
        if newest is not None:
            self._remove_older(newest, only_bad=False)

    def update_state(self, step: int, changes: Mapping[str, Any]) -> None:
        """Change the state in the checkpoint of a step, if there is one; its files stay.

        It is complete at any moment: where nothing but the state is new, saving it again would take
        the only one away first.

        Args:
            step: of the checkpoint.
            changes: parts of the state, by name; the others stay.
        """

        def write() -> None:
            path = list_path(self._folder(step))
            if path.is_file():
                content = read_list(path)
                state = {**content.state, **changes}
                write_json(path, to_json(replace(content, state=state)))

        self._ranks.run_on_rank0(write)

    def _folder(self, step: int) -> Path:
        return self._root / f"step-{step}"

    def _written(self, folder: Path) -> dict[str, FileEntry]:
        """Return the files that this rank has written."""
        with _explained(folder):
            written = self._writer.take().items()
        return {path.relative_to(folder).as_posix(): entry for path, entry in written}

    def _others(self, folder: Path, known: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
        """Return this rank's share of what DeepSpeed copies into a checkpoint: of offloading."""
        with disk_errors_explained(folder):
            paths = (path for path in folder.rglob("*") if path.is_file())
            names = sorted({path.relative_to(folder).as_posix() for path in paths} - known.keys())
            own = names[self._ranks.rank :: self._ranks.world]
            return {name: _flushed(folder / name) for name in own}

    def _gathered(self, own: dict[str, FileEntry]) -> dict[str, FileEntry]:
        """Return what all ranks know of a checkpoint's files."""
        return {name: entry for part in self._ranks.gather(own) for name, entry in part.items()}

    def _complete(self, folder: Path, content: FileList) -> None:
        """Write the list of a checkpoint, whose files are on the disk."""
        with _explained(folder):
            write_json(list_path(folder), to_json(content))
            with atomic_write(self._root / LATEST) as handle:
                handle.write(folder.name.encode())

    def _remove_older(self, newest: int, *, only_bad: bool) -> None:
        """Remove checkpoints before a step, which is complete.

        Only complete ones with finite losses count as kept. Folders of later steps, which a run
        left unfinished or damaged before it went back to an earlier step, stay until it reaches
        their step again.

        Args:
            newest: the step.
            only_bad: remove those alone that were saved while losses were not finite.

        Raises:
            CollectiveError: one could not be removed.
        """

        def remove() -> None:
            steps = [step for step in steps_in(self._root) if step <= newest]
            seen = {step: read_checkpoint(self._folder(step)) for step in steps}
            streaks = {s: c.bad_streak for s, c in seen.items() if isinstance(c, Checkpoint)}
            good = [step for step, streak in streaks.items() if not streak][-self._keep :]
            first_kept = good[0] if good and not only_bad else 0
            for step in steps:
                if step < first_kept or (step < newest and streaks.get(step)):
                    _remove(self._folder(step))

        self._ranks.run_on_rank0(remove)


def _make_empty(folder: Path) -> None:
    """Make the folder of a checkpoint, in the place of one of the same step."""
    _remove(folder)
    with _explained(folder):
        make_folder(folder)


def _remove(folder: Path) -> None:
    """Remove a checkpoint, its list first, so that a crash on the way leaves no list."""
    with disk_errors_explained(folder):
        list_path(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Say which checkpoint could not be written, and what a run does then.

    Raises:
        UserError: a disk is full, or does not let files be written.
    """
    try:
        with disk_errors_explained(folder):
            yield
    except UserError as error:
        is_saved = any(list_path(other).exists() for other in folder.parent.glob("step-*"))
        then = (
            "resumes from the checkpoint before" if is_saved else "begins anew: nothing was saved"
        )
        raise UserError(f"{folder} was not saved: {error} It {then}.") from error


def _flushed(path: Path) -> FileEntry:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return FileEntry(bytes=size(path), crc32c=crc32c(path))
