"""Whether a run has room: on its disk for a checkpoint, and on a CPU in memory for the model.

Both figures are the least that any run takes: rows of an optimizer that are filled up, activations
and copies come on top.
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from shards.errors import UserError

_SAVED = 12
"""Bytes of a checkpoint per parameter: it in fp32, and AdamW's two moments."""
_MOMENTS = 8
"""Of these alone."""
_GB = 1e9
_GROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


def checkpoint_bytes(parameters: int) -> int:
    """Return the least bytes of a checkpoint of a model."""
    return _SAVED * parameters


def check_disk(folder: Path, parameters: int) -> None:
    """Check that a disk has room for a checkpoint.

    Args:
        folder: of the run's checkpoints.
        parameters: of the model.

    Raises:
        UserError: it has not.
    """
    needed, free = checkpoint_bytes(parameters), _free(folder)
    if free < needed:
        raise UserError(
            f"--save {folder}: its disk has {free / _GB:,.1f} GB free, and a checkpoint of "
            f"{parameters:,} parameters takes at least {needed / _GB:,.1f} GB there. Make room, or "
            "give a folder on another disk."
        )


def _free(folder: Path) -> int:
    """Return the free bytes of the disk of a folder, which need not be there yet."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def check_memory(
    parameters: int, *, stage: int, wide: bool, here: int, world: int, free: int
) -> None:
    """Check that the memory of a machine holds what its ranks compute on the CPU.

    Args:
        parameters: of the model.
        stage: of ZeRO.
        wide: they are in fp32, not in 16 bits.
        here: ranks on this machine.
        world: ranks in all.
        free: bytes of memory; 0: not known.

    Raises:
        UserError: it does not.
    """
    weights = 4 if wide else 2
    divided = {0: 0, 3: 2 * weights + _MOMENTS}.get(stage, weights + _MOMENTS)
    each = (2 * weights + _MOMENTS - divided) + divided / world
    needed = parameters * here * each
    if 0 < free < needed:
        raise UserError(
            f"training {parameters:,} parameters on the CPU takes at least {needed / _GB:,.1f} GB "
            f"of memory on this machine, and {free / _GB:,.1f} GB are free. Train on GPUs, or give "
            "a smaller --model."
        )


def offloads_to_nvme(deepspeed: Mapping[str, Any]) -> bool:
    """Return whether settings of DeepSpeed move a part of the model to a disk."""
    zero = deepspeed.get("zero_optimization") or {}
    offloads = (zero.get(f"offload_{part}") or {} for part in ("optimizer", "param"))
    return any(offload.get("device") == "nvme" for offload in offloads)


def free_memory(groups: Path = _GROUPS, proc: Path = _PROC) -> int:
    """Return bytes that can be taken without swapping, 0 if that is not known.

    Args:
        groups: where control groups of version 2 are mounted: a batch system or a container limits
            memory with them. The page cache of a group counts as free.
        proc: where the kernel describes processes.
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
