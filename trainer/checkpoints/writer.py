"""The files of a checkpoint: whole or absent, summed as they are written, by a thread of their own.

DeepSpeed says what belongs into a file. Where memory allows, the file is made there, and written
while training goes on; elsewhere training waits for it.
"""

import io
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from shards.storage.files import FileEntry, atomic_write

_SHARE = 0.5
"""Of the free memory, for the files of all ranks of a machine."""
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
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._files: dict[Path, Future[FileEntry]] = {}
        engine.checkpoint_engine.save = self.write

    def write(self, state_dict: Mapping[str, Any], path: str) -> None:
        """Begin to write a file; the values may change from now on."""
        is_small = _size(state_dict) * self._neighbours <= free_memory() * _SHARE
        state = _serialized(state_dict) if is_small else state_dict
        future = self._files[Path(path)] = self._thread.submit(_write, state, Path(path))
        if not is_small:
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


def _size(state: Mapping[str, Any]) -> int:
    """Return the bytes of a state's tensors, of which some may share them."""
    tensors = (leaf for leaf in pytree.tree_leaves(state) if isinstance(leaf, torch.Tensor))
    storages = (tensor.untyped_storage() for tensor in tensors)
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def _serialized(state: Mapping[str, Any]) -> memoryview:
    content = io.BytesIO()
    _save(state, content)
    return content.getbuffer()


def _save(state: Mapping[str, Any], sink: Any) -> None:
    """Do as torch.save, without a CRC-32 of each tensor: the list has a crc32c of each file."""
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(state, sink)
    finally:
        torch.serialization.set_crc32_options(before)


def _write(state: Mapping[str, Any] | memoryview, path: Path) -> FileEntry:
    with atomic_write(path) as handle:
        if isinstance(state, memoryview):
            for start in range(0, len(state), _BLOCK_BYTES):
                handle.write(state[start : start + _BLOCK_BYTES])
        else:
            try:
                _save(state, handle)  # of which torch uses two methods alone
            except RuntimeError as error:  # of ending the archive, after what went wrong
                raise error.__context__ or error from None
    return handle.entry


_GROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


def free_memory(groups: Path = _GROUPS, proc: Path = _PROC) -> int:
    """Return bytes that can be taken without swapping, 0 if that is not known.

    Args:
        groups: where control groups of version 2 are mounted: a batch system or a container limits
            memory with them. The page cache of a group counts as free.
        proc: where the kernel tells of processes.
    """
    left = [_figures(proc / "meminfo").get("MemAvailable:", 0) << 10]
    name = ""
    with suppress(OSError):
        name = (proc / "self/cgroup").read_text().strip().rpartition("::/")[2]
    # In a container the name may be the machine's, and the container's own group the root.
    for group in (groups / name, *(groups / name).parents):
        with suppress(OSError, ValueError):  # the root has no such files, and "max" is no limit
            limit = int((group / "memory.max").read_text())
            taken = int((group / "memory.current").read_text())
            left.append(limit - taken + _figures(group / "memory.stat").get("inactive_file", 0))
    return max(0, min(left))


def _figures(path: Path) -> dict[str, int]:
    """Return the first number of each line by its first word."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if words[1:] and words[1].isdigit()}
