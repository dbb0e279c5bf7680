"""The files of a checkpoint: whole or absent, and summed as they are written.

It takes the place of DeepSpeed's own writer, which leaves torn files. DeepSpeed calls it on each
rank between collectives, so it raises nothing there: the other ranks would wait for one that met a
full disk. What goes wrong is kept, and raised when the ranks ask for it together.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from shards.errors import UserError
from shards.storage.files import FileEntry, atomic_write
from trainer.checkpoints.torch_file import one_line


class CheckpointWriter:
    """Writes the files of this rank."""

    def __init__(self, engine: Any) -> None:
        """Take over from DeepSpeed what its engine writes."""
        self._entries: dict[Path, FileEntry] = {}
        self._problem: Exception | None = None
        engine.checkpoint_engine.save = self.write
        # DeepSpeed's scripts beside the files: a disk may be full, and they run what files name.
        engine._copy_recovery_script = lambda *_: None

    def write(self, state_dict: Mapping[str, Any], path: str) -> None:
        """Write a file, unless one before could not be written."""
        if self._problem is not None:
            return
        try:
            self._entries[Path(path)] = _write(state_dict, Path(path))
        except Exception as error:  # noqa: BLE001  DeepSpeed's other ranks wait for this one
            self._problem = error

    def take(self) -> dict[Path, FileEntry]:
        """Return what was written since the last call, and forget it.

        Raises:
            UserError: a file could not be written.
        """
        entries, problem = self._entries, self._problem
        self._entries, self._problem = {}, None
        if isinstance(problem, UserError):
            raise problem
        if problem is not None:
            raise UserError(f"{type(problem).__name__}: {one_line(problem)}.") from problem
        return entries


def _write(state: Mapping[str, Any], path: Path) -> FileEntry:
    """Do as torch.save, without a CRC-32 of each tensor: the list has a crc32c of each file."""
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        with atomic_write(path) as handle:
            try:
                torch.save(state, handle)  # type: ignore[arg-type]  # it only calls write and flush
            except RuntimeError as error:  # of ending the archive, after what went wrong
                raise error.__context__ or error from None
    finally:
        torch.serialization.set_crc32_options(before)
    return handle.entry
