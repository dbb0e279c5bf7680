"""The files of a checkpoint: whole or absent, summed as they are written, by a thread of their own.

DeepSpeed says what belongs into a file. Where memory allows it is copied, and the file is written
while training goes on; elsewhere training waits for it.
"""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch

from shards.errors import UserError
from shards.memory import is_lack_of_memory
from shards.storage.files import FileEntry, Handle, atomic_write
from trainer.checkpoints.free_memory import free_memory
from trainer.checkpoints.snapshot import Snapshot

_SHARE = 0.5
"""Of the free memory, for the copies of all ranks of a machine."""
_BLOCK_BYTES = 16 << 20
"""Summed at a time: meanwhile no other thread runs."""


class CheckpointWriter:
    """Writes the files of this rank."""

    def __init__(self, engine: Any, *, neighbours: int) -> None:
        """Take over from DeepSpeed what its engine writes.

        Args:
            engine: of DeepSpeed.
            neighbours: ranks on this machine, this one among them.
        """
        self._neighbours = neighbours
        self._zipped = bool(engine.checkpoint_engine.zipfile_serialization)
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._files: dict[Path, Future[FileEntry]] = {}
        engine.checkpoint_engine.save = self.write

    def write(self, state_dict: Mapping[str, Any], path: str) -> None:
        """Begin to write a file; the values may change from now on."""
        copied = self._copied(state_dict)
        state = state_dict if copied is None else copied
        future = self._thread.submit(_write, state, Path(path), zipped=self._zipped)
        self._files[Path(path)] = future
        if copied is None:
            wait([future])

    @property
    def is_done(self) -> bool:
        """Whether all files are written, or could not be."""
        return all(future.done() for future in self._files.values())

    def entries(self) -> dict[Path, FileEntry]:
        """Wait until all files are on the disk, return them, and forget them.

        Raises:
            UserError: a file could not be written.
        """
        files, self._files = self._files, {}
        wait(files.values())
        return {path: future.result() for path, future in files.items()}

    def _copied(self, state: Mapping[str, Any]) -> Any:
        """Return a copy, None where memory does not allow it."""
        snapshot = Snapshot(state)
        if snapshot.num_bytes * self._neighbours > free_memory() * _SHARE:
            return None
        try:
            return snapshot.copy()
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error) and "memory" not in str(error):
                raise
            return None


def _write(state: Any, path: Path, *, zipped: bool) -> FileEntry:
    with atomic_write(path) as handle:
        blocks = _Blocks(handle)
        file: Any = blocks  # of which torch uses two methods alone
        try:
            torch.save(state, file, _use_new_zipfile_serialization=zipped)
        except Exception as error:
            # torch ends its archive nevertheless, and raises for that what tells nothing.
            if blocks.error is not None:
                raise blocks.error from error
            raise
    return handle.entry


class _Blocks:
    """A file that takes large tensors a block at a time."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.error: UserError | None = None
        """The first one of the disk."""

    def write(self, data: bytes | memoryview) -> int:
        """Append data and return its size.

        Raises:
            UserError: the disk does not take it.
        """
        view = memoryview(data)
        try:
            for start in range(0, len(view), _BLOCK_BYTES):
                self._handle.write(view[start : start + _BLOCK_BYTES])
        except UserError as error:
            self.error = self.error or error
            raise
        return len(view)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is whole."""
