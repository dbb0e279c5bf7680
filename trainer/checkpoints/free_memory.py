"""How much memory this process may still take: of the machine, and of its control groups."""

from contextlib import suppress
from pathlib import Path

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
