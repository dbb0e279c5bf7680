"""Checks that the disk has room for a checkpoint and that memory suffices to train on the CPU.

Both figures are minimums, which leave out the padding of the optimizer's tensors, activations and
copies.
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from shards.errors import UserError

_SAVED = 12
"""Bytes per parameter in a checkpoint, for the parameter in fp32 and AdamW's two moments."""
_MOMENTS = 8
"""Bytes that AdamW's two moments take per parameter."""
_GB = 1e9
_GROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


def checkpoint_bytes(parameters: int) -> int:
    """Return the minimum size of a checkpoint in bytes."""
    return _SAVED * parameters


def check_disk(folder: Path, parameters: int) -> None:
    """Check that a disk has room for a checkpoint.

    Args:
        folder: the folder of the run's checkpoints.
        parameters: the number of parameters of the model.

    Raises:
        UserError: the disk has too little room.
    """
    needed, free = checkpoint_bytes(parameters), _free(folder)
    if free < needed:
        raise UserError(
            f"--save {folder}: its disk has {free / _GB:,.1f} GB free, and a checkpoint of "
            f"{parameters:,} parameters takes at least {needed / _GB:,.1f} GB there. Make room, or "
            "give a folder on another disk."
        )


def _free(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, which need not exist yet."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def check_memory(
    parameters: int, *, stage: int, wide: bool, here: int, world: int, free: int
) -> None:
    """Check that a machine has enough memory for training with its ranks on the CPU.

    Args:
        parameters: the number of parameters of the model.
        stage: the stage of ZeRO.
        wide: whether the parameters are in fp32 rather than in 16 bits.
        here: the number of ranks on this machine.
        world: the number of all ranks.
        free: the free bytes of memory; 0 if the number is not known.

    Raises:
        UserError: there is too little memory.
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
    """Return whether DeepSpeed's settings offload a part of the model to a disk."""
    zero = deepspeed.get("zero_optimization") or {}
    offloads = (zero.get(f"offload_{part}") or {} for part in ("optimizer", "param"))
    return any(offload.get("device") == "nvme" for offload in offloads)


def free_memory(groups: Path = _GROUPS, proc: Path = _PROC) -> int:
    """Return the bytes that can be allocated without swapping; 0 if that is not known.

    Args:
        groups: the mount point of control groups (version 2), with which batch systems and
            containers limit memory. The page cache of a group counts as free.
        proc: the mount point of /proc.
    """
    left = [_figures(proc / "meminfo").get("MemAvailable:", 0) << 10]
    name = ""
    with suppress(OSError):
        name = (proc / "self/cgroup").read_text().strip().rpartition("::/")[2]
    # In a container, the name may be the one on the host, although the container's own group is the
    # root there.
    for group in (groups / name, *(groups / name).parents):
        with suppress(OSError, ValueError):  # the root has no such files, and "max" means no limit
            limit = int((group / "memory.max").read_text())
            taken = int((group / "memory.current").read_text())
            left.append(limit - taken + _figures(group / "memory.stat").get("inactive_file", 0))
    return max(0, min(left))


def _figures(path: Path) -> dict[str, int]:
    """Return the number in the second column of each line, by the first word of the line."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if words[1:] and words[1].isdigit()}
