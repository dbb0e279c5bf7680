"""Who reads what of a folder: readers share locks on names, and nothing locked is deleted.

The locks are on `folder/.readers`, an empty file: a name's lock is that of the byte whose number is
the name's crc32c. They belong to an open file (Linux's open file description locks): they end when
the reader and all processes forked from it have closed it, however they end. A reader needs no
permission to write. Without the file, on a disk without locks and behind a URL, readers go on
without them.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shards.storage.disk import disk_errors_explained
from shards.storage.files import crc32c_of
from shards.storage.remote import AnyPath

NAME = ".readers"

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


class Hold:
    """Locks on names, which nobody deletes while this object or a fork of its process lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)

    @classmethod
    def on(cls, folder: AnyPath, names: Iterable[str]) -> "Hold | None":
        """Return shared locks on names; None where there are no locks.

        Raises:
            BlockingIOError: One of the names is being deleted.
        """
        if not isinstance(folder, Path):
            return None
        try:
            hold = cls(os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return None
        for name in names:
            try:
                _lock(hold._descriptor, name, fcntl.F_RDLCK)
            except BlockingIOError:
                raise
            except OSError:
                return None
        return hold


@contextmanager
def excluded(folder: AnyPath, name: str) -> Iterator[bool]:
    """Yield whether nobody holds a name; if so, nobody can take hold of it while the block runs.

    Where there are no locks, nobody is known to hold anything.
    """
    if not isinstance(folder, Path):
        yield True
        return
    admit_readers(folder)
    path = folder / NAME
    with disk_errors_explained(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield _is_free(descriptor, name)
    finally:
        os.close(descriptor)


def _is_free(descriptor: int, name: str) -> bool:
    try:
        _lock(descriptor, name, fcntl.F_WRLCK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _lock(descriptor: int, name: str, mode: int) -> None:
    """Take the lock of a name, or raise BlockingIOError at once if another has it."""
    byte = crc32c_of(name.encode())
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(mode, os.SEEK_SET, byte, 1, 0))
    except OSError as error:
        if error.errno in _TAKEN:
            raise BlockingIOError(error.errno, os.strerror(error.errno)) from error
        raise
