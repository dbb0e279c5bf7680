"""How much memory this process may still take: of the machine, and of its control groups."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class _Files:
    """Where a group tells of its memory."""

    limit: str
    taken: str
    cache: str
    """What memory.stat calls pages of files that may go, those of the groups below included."""


_VERSION_1 = _Files(
    limit="memory.limit_in_bytes", taken="memory.usage_in_bytes", cache="total_inactive_file"
)
_VERSION_2 = _Files(limit="memory.max", taken="memory.current", cache="inactive_file")


def free_memory(groups: Path = _GROUPS, proc: Path = _PROC) -> int:
    """Return bytes that can be taken without swapping, 0 if that is not known.

    Args:
        groups: where control groups are mounted, those of version 1 in a folder `memory`: a batch
            system or a container limits memory with them.
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
    for line in lines:
        _, controllers, name = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            yield from _left(groups, name, _VERSION_2)
        elif "memory" in controllers.split(","):
            yield from _left(groups / "memory", name, _VERSION_1)


def _left(root: Path, name: str, files: _Files) -> Iterator[int]:
    """Yield what a group and those above it leave, as far as they limit anything.

    In a container the name may be the machine's, and the container's own group the root.
    """
    group = root / name.lstrip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(root):
            return
        try:
            limit = int((folder / files.limit).read_text())
            taken = int((folder / files.taken).read_text())
        except (OSError, ValueError):  # the root has no such files, and "max" is no limit
            continue
        yield limit - taken + _figures(folder / "memory.stat").get(files.cache, 0)


def _figures(path: Path) -> dict[str, int]:
    """Return the first number of each line by its first word."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if words[1:] and words[1].isdigit()}
