"""Saving a run: its files are made in memory, and written while training goes on.

    saver.save(…)       makes them; where memory does not allow that, writes
    saver.advance(…)    between steps: completes a checkpoint once every rank has its files on disk
    saver.finish(…)     waits for that

Only then do its lists appear, so a crash at any moment before costs no more than this checkpoint.
Older ones go when it is complete and a later loss was finite: until then nobody knows whether its
weights still are any good.
"""

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from shards.errors import UserError
from shards.records import to_json
from shards.storage.disk import disk_errors_explained
from shards.storage.files import FileEntry, atomic_write, crc32c, size, write_json
from trainer.checkpoints.checkpoint import (
    BAD_STREAK,
    LATEST,
    Checkpoint,
    FileList,
    read_checkpoint,
    read_list,
    steps_in,
)
from trainer.checkpoints.disk import Disk, share_of
from trainer.checkpoints.writer import CheckpointWriter
from trainer.ranks import AgreedError, Ranks

_VERSION = 1


class Saver:
    """Writes the checkpoints of a run; all ranks call its methods alike."""

    def __init__(self, engine: Any, disk: Disk, *, keep: int, ranks: Ranks) -> None:
        """Take over what an engine writes.

        Args:
            engine: of DeepSpeed.
            disk: where the run is saved.
            keep: complete checkpoints that are kept.
            ranks: of the run.
        """
        machines = ranks.gather(socket.gethostname())
        self._engine = engine
        self._writer = CheckpointWriter(engine, neighbours=machines.count(machines[ranks.rank]))
        self._disk = disk
        self._keep = keep
        self._ranks = ranks
        self._pending: FileList | None = None
        """Of the checkpoint whose files are being written."""
        self._complete_step: int | None = None
        """The last complete one, unless what is older has been pruned."""

    def save(self, *, step: int, state: Mapping[str, Any]) -> None:
        """Begin a checkpoint, once the one before is complete; the run may go on.

        Args:
            step: that was taken last.
            state: of the run, with the `BAD_STREAK` of its losses.

        Raises:
            UserError: this one or the one before cannot be written; earlier ones are kept.
        """
        self.finish(bad_streak=int(state[BAD_STREAK]))
        folder = self._folder(step)
        self._ranks.together(lambda: self._remove(folder))
        with _explained(folder):
            self._engine.save_checkpoint(
                str(self._disk.folder), folder.name, client_state={"step": step}, save_latest=False
            )
        self._pending = FileList(
            version=_VERSION,
            step=step,
            ranks=self._disk.members,
            world=self._ranks.world,
            stage=int(self._engine.zero_optimization_stage()),
            files={},
            state=state,
        )
        if self._is_written():
            self._complete(self._pending)

    def advance(self, *, bad_streak: int) -> None:
        """Complete what was begun if all ranks have written it, and prune what is older.

        Args:
            bad_streak: how many losses in a row were not finite, up to the step just taken.

        Raises:
            UserError: the checkpoint could not be written; earlier ones are kept.
        """
        if self._pending is None or self._is_written():
            self.finish(bad_streak=bad_streak)
        elif not bad_streak:
            self._prune()

    def finish(self, *, bad_streak: int) -> None:
        """Wait until what was begun is complete, then do as `advance`."""
        if self._pending is not None:
            self._complete(self._pending)
        if not bad_streak:
            self._prune()

    def update_state(self, step: int, changes: Mapping[str, Any]) -> None:
        """Change the state in the checkpoint of a step, if there is one; its files stay.

        It is complete at any moment: where nothing but the state is new, saving it again would take
        the only one away first.

        Args:
            step: of the checkpoint.
            changes: parts of the state, by name; the others stay.
        """

        def write() -> None:
            path = self._list_of(step)
            if self._ranks.rank == self._disk.leader and path.is_file():
                file_list = read_list(path)
                state = {**file_list.state, **changes}
                write_json(path, to_json(replace(file_list, state=state)))

        self._ranks.together(write)

    def _folder(self, step: int) -> Path:
        return self._disk.folder / f"step-{step}"

    def _list_of(self, step: int) -> Path:
        return self._folder(step) / f"whole-{self._disk.leader:05d}.json"

    def _is_written(self) -> bool:
        """Return whether all ranks have written their files; all of them call this."""
        done = self._ranks.sum(torch.tensor([int(self._writer.is_done)]))
        return int(done) == self._ranks.world

    def _complete(self, pending: FileList) -> None:
        """Write the lists of a checkpoint, whose files the ranks have written or still write."""
        self._pending = None
        folder = self._folder(pending.step)

        def wait() -> dict[str, FileEntry]:
            with _explained(folder):
                written = self._writer.entries().items()
            return {path.relative_to(folder).as_posix(): entry for path, entry in written}

        files = self._gathered(self._ranks.together(wait))
        files |= self._gathered(self._ranks.together(lambda: self._others(folder, files)))

        def commit() -> None:
            if self._ranks.rank == self._disk.leader:
                file_list = replace(pending, files=dict(sorted(files.items())))
                write_json(self._list_of(pending.step), to_json(file_list))
                with atomic_write(self._disk.folder / LATEST) as handle:
                    handle.write(folder.name.encode())

        self._ranks.together(commit)
        self._complete_step = pending.step
        self._remove_older(pending.step, only_bad=True)

    def _gathered(self, own: dict[str, FileEntry]) -> dict[str, FileEntry]:
        """Return what the ranks that see this rank's disk know of a checkpoint's files."""
        by_rank = self._ranks.gather(own)
        return {name: entry for rank in self._disk.members for name, entry in by_rank[rank].items()}

    def _others(self, folder: Path, known: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
        """Return this rank's share of what DeepSpeed copies into a checkpoint: of offloading."""
        with disk_errors_explained(folder):
            paths = (path for path in folder.rglob("*") if path.is_file())
            names = sorted({path.relative_to(folder).as_posix() for path in paths} - known.keys())
            share = share_of(names, self._disk, self._ranks)
            return {name: _flushed(folder / name) for name in share}

    def _prune(self) -> None:
        """Remove what is older than the last checkpoints to keep, up to the complete one."""
        newest, self._complete_step = self._complete_step, None
        if newest is not None:
            self._remove_older(newest, only_bad=False)

    def _remove_older(self, newest: int, *, only_bad: bool) -> None:
        """Remove checkpoints before a step, which is complete.

        Only complete ones with finite losses count as kept. Folders of later steps, which a run
        left unfinished or damaged before it went back to an earlier step, stay until it reaches
        their step again. Only the rank that removes them looks: it would take them away under
        another's eyes.

        Args:
            newest: the step.
            only_bad: remove those alone that were saved while losses were not finite.

        Raises:
            AgreedError: one could not be removed on the disk of some rank.
        """
        rank, world = self._ranks.rank, self._ranks.world

        def remove() -> None:
            if rank != self._disk.leader:
                return
            steps = [step for step in steps_in(self._disk.folder) if step <= newest]
            seen = {s: read_checkpoint(self._folder(s), rank=rank, world=world) for s in steps}
            streaks = {s: c.bad_streak for s, c in seen.items() if isinstance(c, Checkpoint)}
            good = [step for step, streak in streaks.items() if not streak][-self._keep :]
            first_kept = good[0] if good and not only_bad else 0
            for step in steps:
                if step < first_kept or (step < newest and streaks.get(step)):
                    self._remove(self._folder(step))

        self._ranks.together(remove)

    def _remove(self, folder: Path) -> None:
        """Remove a checkpoint, its lists first, so that a crash on the way leaves no list."""
        if self._ranks.rank != self._disk.leader:
            return
        with disk_errors_explained(folder):
            for path in folder.glob("whole-*.json"):
                path.unlink()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def completed_on_error(finish: Callable[[], None]) -> Iterator[None]:
    """Complete what is being written when all ranks fail: it is of steps that went well.

    Args:
        finish: completes it; what goes wrong then is told as well.
    """
    try:
        yield
    except AgreedError as error:
        try:
            finish()
        except AgreedError as other:
            raise AgreedError(f"{error}\n  {other}") from error
        raise


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
        others = [*folder.parent.glob("step-*/whole-*.json")]
        then = "resumes from the checkpoint before" if others else "begins anew: nothing was saved"
        raise UserError(f"{folder} was not saved: {error} It {then}.") from error


def _flushed(path: Path) -> FileEntry:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return FileEntry(bytes=size(path), crc32c=crc32c(path))
