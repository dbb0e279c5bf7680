"""How much memory this process may still take: of the machine, and of its control groups."""

from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


def free_memory(groups: Path = _GROUPS, proc: Path = _PROC) -> int:
    """Return bytes that can be taken without swapping, 0 if that is not known.

    Args:
        groups: where control groups (version 2) are mounted: a batch system or a container limits
            memory with them.
        proc: where the kernel tells of processes.
    """
    return max(0, min([_of_machine(proc), *_of_groups(groups, proc)]))


def _of_machine(proc: Path) -> int:
    return _figures(proc / "meminfo").get("MemAvailable:", 0) << 10


def _of_groups(groups: Path, proc: Path) -> Iterator[int]:
    """Yield what each group above this process leaves; the page cache counts as free."""
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    names = [line.removeprefix("0::/") for line in lines if line.startswith("0::/")]
    for folder in (groups / names[0], *(groups / names[0]).parents) if names else ():
        if not folder.is_relative_to(groups):
            return
        try:
            limit = int((folder / "memory.max").read_text())
            taken = int((folder / "memory.current").read_text())
        except (OSError, ValueError):  # the root has no such files, and "max" is no limit
            continue
        yield limit - taken + _figures(folder / "memory.stat").get("inactive_file", 0)


def _figures(path: Path) -> dict[str, int]:
    """Return the first number of each line by its first word."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if words[1:] and words[1].isdigit()}
