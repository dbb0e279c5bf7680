"""Locks a folder for one process, or for several that share it."""

import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shards.errors import UserError
from shards.storage.disk import disk_errors_explained
from shards.storage.files import make_folder
from shards.storage.lease import lease_dir
from shards.storage.remote import AnyPath, RemotePath

_LOG = logging.getLogger("corpusmill")


LOCK = ".lock"
"""The file in a locked folder, which names the holder of the lock and is never deleted."""


@contextmanager
def lock_dir(
    folder: AnyPath, *, shared: bool = False, wait: bool = False, flag: str = "--output"
) -> Iterator[None]:
    """Lock the folder for this process while the block runs.

    The lock is `flock` on `folder/.lock`, which always ends with the process. Programs that this
    process starts do not inherit the lock; a forked child does, until it ends. For a URL the
    lock is a lease (lease.py).

    Args:
        folder: The folder to lock.
        shared: Share the lock with other processes that also pass `shared`.
        wait: Wait without limit while another process or thread has locked it.
        flag: The flag that names the folder, for the error message.

    Raises:
        UserError: Another process has locked the folder, or the lock file cannot be locked.
    """
    if isinstance(folder, RemotePath):
        with lease_dir(folder, shared=shared, wait=wait):
            yield
        return
    path = folder / LOCK
    with disk_errors_explained(path):
        make_folder(folder)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with disk_errors_explained(path):
            _lock(descriptor, folder, shared=shared, wait=wait, flag=flag)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, _owner().encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _owner() -> str:
    """Return the part of a message that describes this process as the holder of a lock."""
    job = os.environ.get("SLURM_JOB_ID")
    owner = f"process {os.getpid()} on host {socket.gethostname()}"
    return f"{owner} (Slurm job {job})" if job else owner


def _lock(descriptor: int, folder: Path, *, shared: bool, wait: bool, flag: str) -> None:
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(descriptor, 1024, 0).decode(errors="replace") or "another process"
        if not wait:
            raise UserError(
                f"{folder} is being written by {owner}; wait for it or choose another {flag}."
            ) from error
        _LOG.info("%s is being written by %s: waiting for it", folder, owner)
        fcntl.flock(descriptor, mode)
