"""Which ranks see the same folder: all nodes share one, or each node has its own disk."""

import errno
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from shards.errors import UserError
from shards.storage.files import atomic_write, make_folder
from shards.storage.lock import LOCK, locked
from trainer.ranks import AgreedError, Ranks

T = TypeVar("T")

_WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of disks without locks, such as Lustre that is mounted without `flock`."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A folder, and the ranks that see the same one."""

    folder: Path
    members: tuple[int, ...]
    """Ascending; this rank is among them."""
    node_local: bool
    """Whether other ranks see a different folder under that path."""

    @property
    def leader(self) -> int:
        """The rank that writes what each folder needs only once."""
        return self.members[0]


def share_of(items: Sequence[T], disk: Disk | None, ranks: Ranks) -> Sequence[T]:
    """Return this rank's share of what the ranks that see one disk do together; None: all of it."""
    members: Sequence[int] = (ranks.rank,) if disk is None else disk.members
    return items[members.index(ranks.rank) :: len(members)]


@contextmanager
def run_folder_locked(folder: Path | None, ranks: Ranks, *, start: Callable[[], T]) -> Iterator[T]:
    """Yield what `start` returns, while no other run can write into the same folder.

    The first rank alone holds the lock: the nodes of a run may share the folder. All ranks call
    this.

    Args:
        folder: --save of the run; None: it is not saved.
        ranks: of the run.
        start: opens the run. If it refuses to, an empty folder that was made for it goes again.

    Raises:
        AgreedError: another run writes into the folder; or as `start`.
    """
    with ExitStack() as lock:

        def take_lock() -> None:
            if folder is None or not ranks.is_first:
                return
            try:
                lock.enter_context(locked(folder, flag="--save"))
            except UserError as error:
                if getattr(error.__cause__, "errno", 0) not in _WITHOUT_LOCKS:
                    raise
                _log.warning("%s: its disk has no locks. Start no second run there", folder)

        with _removed_if_refused(folder):
            ranks.together(take_lock)
            started = start()
        yield started


@contextmanager
def _removed_if_refused(folder: Path | None) -> Iterator[None]:
    """Remove an empty folder that a run made which is refused in this block."""
    was_there = folder is None or folder.exists()
    try:
        yield
    except UserError:
        if folder is not None and not was_there:
            with suppress(OSError):  # another run needs it, or it is gone
                (folder / LOCK).unlink(missing_ok=True)
                folder.rmdir()
        raise


def find_disk(folder: Path, ranks: Ranks) -> Disk:
    """Return a folder, created if necessary, and the ranks that see it; all ranks call this.

    Every rank leaves a file and looks for those of the others.

    Raises:
        AgreedError: some nodes share a folder and others do not, or it cannot be written.
    """
    mark = ranks.gather(uuid.uuid4().hex)[0]
    own = folder / f".rank-{ranks.rank}-{mark}"

    def leave_mark() -> None:
        make_folder(folder)
        with atomic_write(own):
            pass

    ranks.together(leave_mark)
    seen = sorted(int(path.name.split("-")[1]) for path in folder.glob(f".rank-*-{mark}"))
    groups = sorted(set(ranks.gather(tuple(seen))))
    own.unlink(missing_ok=True)
    firsts = [rank for rank, local in enumerate(ranks.gather(ranks.local_rank)) if local == 0]
    if len(groups) > 1 and [group[0] for group in groups] != firsts:
        shown = " and ".join(f"ranks {', '.join(map(str, group))}" for group in groups)
        raise AgreedError(
            f"{folder} is shared by {shown}: that is neither one folder for all nodes nor one for "
            "each. Choose a folder on a disk that all nodes share, or on each node's own disk."
        )
    return Disk(folder=folder, members=tuple(seen), node_local=len(groups) > 1)
