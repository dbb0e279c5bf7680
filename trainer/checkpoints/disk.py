"""The folder of a run: one that all ranks see, and that no other run writes into."""

import errno
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from shards.errors import UserError
from shards.storage.files import atomic_write, make_folder
from shards.storage.lock import LOCK, locked
from trainer.distributed import Ranks

T = TypeVar("T")

_WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of disks without locks, such as Lustre that is mounted without `flock`."""
_log = logging.getLogger(__name__)


@contextmanager
def run_folder_locked(folder: Path | None, ranks: Ranks, *, start: Callable[[], T]) -> Iterator[T]:
    """Yield what `start` returns, while no other run can write into the same folder.

    The first rank alone holds the lock: the nodes of a run share the folder. All ranks call this.

    Args:
        folder: --save of the run; None: it is not saved.
        ranks: of the run.
        start: opens the run. If it refuses to, an empty folder that was made for it goes again.

    Raises:
        CollectiveError: another run writes into the folder, or not all ranks see it; or as `start`.
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
            ranks.run_on_all_ranks(take_lock)
            if folder is not None:
                _check_shared(folder, ranks)
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


def _check_shared(folder: Path, ranks: Ranks) -> None:
    """Check that all ranks see the folder of the first one, which is made if necessary.

    Raises:
        CollectiveError: some rank does not, or it cannot be written.
    """
    mark = folder / f".seen-{ranks.gather(uuid.uuid4().hex)[0]}"

    def leave_mark() -> None:
        make_folder(folder)
        with atomic_write(mark):
            pass

    def find_mark() -> None:
        # A listing: for a name alone a network's file system may answer what it saw before.
        if not folder.is_dir() or mark.name not in {path.name for path in folder.iterdir()}:
            raise UserError(
                f"--save {folder} is not the folder that rank 0 sees: all ranks save their parts "
                "of a checkpoint in one folder. Give one on storage that all nodes share."
            )

    ranks.run_on_rank0(leave_mark)
    try:
        ranks.run_on_all_ranks(find_mark)
    finally:
        if ranks.is_first:
            mark.unlink(missing_ok=True)
