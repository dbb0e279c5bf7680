"""Saves a run: the ranks write their files, agree that all are written, and write the list last.

A crash at any moment before the list is written costs only this checkpoint. Older checkpoints are
removed when the new one is complete and a later step was good, because until then nobody knows
whether the new weights can be used.

DeepSpeed's own writer leaves truncated files, so ours replaces it. DeepSpeed calls our writer on
each rank between collectives, where an error, such as a full disk, would make the other ranks wait
forever. So our writer keeps its errors until the ranks collect them together.
"""

import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from shards.errors import UserError
from shards.records import to_json
from shards.storage.disk import disk_errors_explained
from shards.storage.files import FileEntry, atomic_write, crc32c, file_size, make_folder, write_json
from shards.storage.lock import LOCK, lock_dir
from trainer.checkpoint import (
    LATEST,
    VERSION,
    Checkpoint,
    FileList,
    list_path,
    read_checkpoint,
    read_list,
    steps_in,
)
from trainer.distributed import Ranks
from trainer.torch_file import one_line

T = TypeVar("T")

_WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of file systems that have no locks, such as Lustre mounted without `flock`."""
_log = logging.getLogger(__name__)


@contextmanager
def run_folder_locked(folder: Path | None, ranks: Ranks, *, start: Callable[[], T]) -> Iterator[T]:
    """Yield the result of `start` while the run's folder is locked against other runs.

    Only the first rank holds the lock, because the nodes of a run share the folder. All ranks call
    this.

    Args:
        folder: the folder of --save; None if the run is not saved.
        ranks: the ranks of the run.
        start: a function that opens the run. If it raises a UserError, a folder that was made for
            the run is removed.

    Raises:
        CollectiveError: a different run writes to the folder, or not all ranks see the same folder.
    """
    if folder is None:
        yield start()
        return
    was_there = folder.exists()
    with ExitStack() as lock:
        try:
            ranks.run_on_rank0(lambda: _lock(folder, lock))
            owner = ranks.run_on_rank0(lambda: _owner(folder))
            ranks.run_on_all_ranks(lambda: _check_shared(folder, owner))
            started = start()
        except UserError:
            if not was_there:
                with suppress(OSError):  # a different run uses it, or it is already removed
                    (folder / LOCK).unlink(missing_ok=True)
                    folder.rmdir()
            raise
        yield started


def _lock(folder: Path, lock: ExitStack) -> None:
    try:
        lock.enter_context(lock_dir(folder, flag="--save"))
    except UserError as error:
        if getattr(error.__cause__, "errno", 0) not in _WITHOUT_LOCKS:
            raise
        _log.warning("%s: its disk has no locks. Do not start a second run there", folder)


def _owner(folder: Path) -> str | None:
    """Return the text of a folder's lock, which names its holder; None if there is no lock."""
    try:
        return (folder / LOCK).read_text("utf-8")
    except OSError:
        return None


def _check_shared(folder: Path, owner: str | None) -> None:
    """Check that this rank sees the folder that the first rank has locked.

    Raises:
        UserError: this rank sees a different folder.
    """
    if _owner(folder) != owner:
        raise UserError(
            f"--save {folder} is not the folder that rank 0 sees: all ranks save their parts of a "
            "checkpoint in one folder. Give one on storage that all nodes share."
        )


class CheckpointSaver:
    """Writes the checkpoints of a run; all ranks call its methods together."""

    def __init__(self, engine: Any, folder: Path, *, keep: int, ranks: Ranks) -> None:
        """Replace the writer of an engine.

        Args:
            engine: DeepSpeed's engine.
            folder: the folder that the run is saved to.
            keep: the number of complete checkpoints to keep.
            ranks: the ranks of the run.
        """
        self._engine, self._root, self._keep, self._ranks = engine, folder, keep, ranks
        self._written: dict[Path, FileEntry] = {}
        self._problem: Exception | None = None
        self._last: int | None = None
        """The step saved last; None once older checkpoints have been pruned."""
        engine.checkpoint_engine.save = self._write
        # DeepSpeed would copy scripts next to the files, but the disk may be full, and these
        # scripts run code that files name.
        engine._copy_recovery_script = lambda *_: None

    def save(self, *, step: int, state: Mapping[str, Any]) -> None:
        """Save a checkpoint.

        Args:
            step: the last step taken.
            state: the state of the run, with its `BAD_STREAK`.

        Raises:
            CollectiveError: the checkpoint cannot be written; earlier checkpoints are kept.
        """
        folder = self._folder(step)
        self._ranks.run_on_rank0(lambda: _make_empty(folder))
        self._engine.save_checkpoint(
            str(self._root), folder.name, client_state={"step": step}, save_latest=False
        )
        by_rank = self._ranks.gather(self._ranks.run_on_all_ranks(lambda: self._files(folder)))
        content = FileList(
            version=VERSION,
            step=step,
            world=self._ranks.world,
            stage=int(self._engine.zero_optimization_stage()),
            files={name: entry for files in by_rank for name, entry in files.items()},
            state=state,
        )
        self._ranks.run_on_rank0(lambda: self._complete(folder, content))
        self._last = step

    def prune(self) -> None:
        """Remove checkpoints that are older than the ones to keep; to be called after a good step.

        Only complete checkpoints that have no bad streak count as kept. Folders of later steps,
        which are unfinished or damaged and date from before the run went back to an earlier step,
        stay until the run reaches their step again.

        Raises:
            CollectiveError: a checkpoint could not be removed.
        """
        if self._last is None:
            return
        newest, self._last = self._last, None

        def remove() -> None:
            steps = [step for step in steps_in(self._root) if step <= newest]
            seen = {step: read_checkpoint(self._folder(step)) for step in steps}
            streaks = {s: c.bad_streak for s, c in seen.items() if isinstance(c, Checkpoint)}
            good = [step for step, streak in streaks.items() if not streak][-self._keep :]
            for step in steps:
                if (good and step < good[0]) or (step < newest and streaks.get(step)):
                    _remove(self._folder(step))

        self._ranks.run_on_rank0(remove)

    def update_state(self, step: int, changes: Mapping[str, Any]) -> None:
        """Change the state in the checkpoint of a step, if there is one; the files stay.

        The checkpoint stays complete at any moment. Saving the checkpoint again would first remove
        it, and it may be the only checkpoint.

        Args:
            step: the step of the checkpoint.
            changes: the changed parts of the state, by name; other parts stay.
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

    def _write(self, state_dict: Mapping[str, Any], path: str) -> None:
        """Write a file of this rank, unless an earlier file could not be written."""
        if self._problem is None:
            try:
                self._written[Path(path)] = _write_torch(state_dict, Path(path))
            except Exception as error:  # noqa: BLE001  DeepSpeed's other ranks wait for this one
                self._problem = error

    def _files(self, folder: Path) -> dict[str, FileEntry]:
        """Return and forget the files that this rank has written.

        Raises:
            UserError: a file could not be written.
        """
        written, problem = self._written, self._problem
        self._written, self._problem = {}, None
        with _explained(folder):
            if isinstance(problem, UserError):
                raise problem
            if problem is not None:
                raise UserError(f"{type(problem).__name__}: {one_line(problem)}.") from problem
        return {path.relative_to(folder).as_posix(): entry for path, entry in written.items()}

    def _complete(self, folder: Path, content: FileList) -> None:
        """Write the list of a checkpoint after all its files are on the disk."""
        with _explained(folder):
            # DeepSpeed itself copies the files of offloaded tensors.
            paths = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
            copied = {n: _flushed(p) for n, p in paths.items() if n not in content.files}
            files = dict(sorted({**content.files, **copied}.items()))
            write_json(list_path(folder), to_json(replace(content, files=files)))
            with atomic_write(self._root / LATEST) as handle:
                handle.write(folder.name.encode())


def _make_empty(folder: Path) -> None:
    """Make the folder of a checkpoint, after removing an earlier checkpoint of the same step."""
    _remove(folder)
    with _explained(folder):
        make_folder(folder)


def _remove(folder: Path) -> None:
    """Remove a checkpoint, its list first, so that a crash cannot leave a list without files."""
    with disk_errors_explained(folder):
        list_path(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Explain an error of writing a checkpoint: name the checkpoint, and say how the run resumes.

    Raises:
        UserError: the disk is full, or files cannot be written.
    """
    try:
        with disk_errors_explained(folder):
            yield
    except UserError as error:
        is_saved = any(list_path(other).exists() for other in folder.parent.glob("step-*"))
        then = "resumes from the checkpoint before" if is_saved else "starts from the beginning"
        raise UserError(f"{folder} was not saved: {error} The run then {then}.") from error


def _flushed(path: Path) -> FileEntry:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return FileEntry(bytes=file_size(path), crc32c=crc32c(path))


def _write_torch(state: Mapping[str, Any], path: Path) -> FileEntry:
    """Call torch.save without a CRC-32 per tensor, because the list has a crc32c per file."""
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        with atomic_write(path) as handle:
            try:
                torch.save(state, handle)  # type: ignore[arg-type]  # it only calls write and flush
            except RuntimeError as error:  # raised by closing the archive after an earlier error
                raise error.__context__ or error from None
    finally:
        torch.serialization.set_crc32_options(before)
    return handle.entry
