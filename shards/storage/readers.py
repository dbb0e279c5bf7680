"""Who reads what of a folder: readers share a lock on a lineage, and what it names is not deleted.

The locks are on `folder/.readers`, an empty file: that of a lineage is the byte whose number is its
crc32c. They belong to an open file (Linux's open file description locks) and end when the reader
and all processes forked from it have closed it, however they end. A reader needs no permission to
write. Without the file, on a disk without locks and behind a URL, readers go on without them.

`folder/.lineages` lists what earlier lineages named, until nobody reads them and it is deleted. (A
lock for every name would do without that list, but the kernel looks at all locks of a file whenever
one is taken: a few processes that read a thousand generations would wait for seconds.)
"""

import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from shards.errors import DamageError
from shards.storage.disk import disk_errors_explained
from shards.storage.files import crc32c_of, read_json, write_json
from shards.storage.remote import AnyPath

NAME = ".readers"
LINEAGES = ".lineages"

_FLOCK = struct.Struct("@hhqqi4x")
"""The kernel's struct flock: type, whence, start, length, process (0)."""

_TAKEN = (errno.EAGAIN, errno.EACCES)


def admit_readers(folder: AnyPath) -> None:
    """Create the file that readers lock, if the folder is on a disk and has none."""
    if isinstance(folder, Path):
        path = folder / NAME
        if not path.exists():
            with disk_errors_explained(path):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))


def remember(folder: AnyPath, lineage: str, names: Iterable[str]) -> None:
    """Write down what a lineage names, before another replaces it."""
    if isinstance(folder, Path):
        write_json(folder / LINEAGES, {**_remembered(folder), lineage: sorted(names)})


def _remembered(folder: Path) -> Mapping[str, list[str]]:
    """Return what earlier lineages name, by lineage.

    Raises:
        DamageError: The file that says so was changed.
    """
    path = folder / LINEAGES
    lineages = read_json(path) if path.exists() else {}
    lists = [*lineages.values()] if isinstance(lineages, dict) else [None]
    if not all(isinstance(names, list) and {*map(type, names)} <= {str} for names in lists):
        raise DamageError(
            f"{path} does not say what earlier manifests of the dataset named: it was changed. "
            "Delete it when nobody reads the dataset, and run the command again."
        )
    return {**lineages}


class Hold:
    """A lock on a lineage: none of its files is deleted while this or a fork of it lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)

    @classmethod
    def on(cls, folder: AnyPath, lineage: str) -> "Hold | None":
        """Return a shared lock on a lineage; None where there are no locks.

        Raises:
            BlockingIOError: Its files are being deleted.
        """
        if not isinstance(folder, Path):
            return None
        try:
            hold = cls(os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC))
            _lock(hold._descriptor, lineage, fcntl.F_RDLCK)
        except BlockingIOError:
            raise
        except OSError:
            return None
        return hold


@contextmanager
def excluded(folder: AnyPath, *, but: str, forget: bool = False) -> Iterator[frozenset[str]]:
    """Yield what earlier lineages name that somebody reads; while the block runs nobody begins to.

    Where there are no locks, nobody is known to read anything.

    Args:
        folder: The folder.
        but: The present lineage.
        forget: What nobody reads will have been deleted when the block ends without exception.
    """
    if not isinstance(folder, Path) or not (folder / LINEAGES).exists():
        yield frozenset()
        return
    earlier = {key: names for key, names in _remembered(folder).items() if key != but}
    admit_readers(folder)
    path = folder / NAME
    with disk_errors_explained(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        read = {key: names for key, names in earlier.items() if not _is_free(descriptor, key)}
        yield frozenset(name for names in read.values() for name in names)
        if forget and read:
            write_json(folder / LINEAGES, read)
        elif forget:
            (folder / LINEAGES).unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _is_free(descriptor: int, lineage: str) -> bool:
    try:
        _lock(descriptor, lineage, fcntl.F_WRLCK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _lock(descriptor: int, lineage: str, mode: int) -> None:
    """Take the lock of a lineage, or raise BlockingIOError at once if another has it."""
    byte = crc32c_of(lineage.encode())
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(mode, os.SEEK_SET, byte, 1, 0))
    except OSError as error:
        if error.errno in _TAKEN:
            raise BlockingIOError(error.errno, os.strerror(error.errno)) from error
        raise
