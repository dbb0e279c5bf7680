"""Locks a folder behind a URL with a lease, because no lock there ends with its process.

    .lock/alone             an exclusive holder; the storage lets only one writer create it
    .lock/shared-<random>   one of several holders that share the folder

A holder rewrites its file every few seconds. Another process takes the lease over if the file has
not changed for DEAD_AFTER, or at once if the holder was a process of this machine that has ended.
Each holder locks a mark in the folder for temporary files; this lock ends with its process.
Clocks of different machines are never compared.
"""

import fcntl
import json
import logging
import os
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shards.commands.output import print_message
from shards.errors import UserError
from shards.storage.disk import disk_errors_explained
from shards.storage.remote import RemotePath

RENEWED_AFTER = 10.0
"""The number of seconds between renewals."""

DEAD_AFTER = 180.0
"""The number of seconds without a renewal after which a holder counts as dead: enough for two
requests that hang."""

SETTLED_AFTER = 3.0
"""The pause in seconds after a dead holder is replaced; then the file of any rival is visible."""

_LOG = logging.getLogger("corpusmill")


@contextmanager
def lease_dir(folder: RemotePath, *, shared: bool, wait: bool = False) -> Iterator[None]:
    """Lock a folder while the block runs.

    A process that was suspended for minutes and whose lease was taken over exits at once. It has
    only written whole files, which do no harm.

    Args:
        folder: The folder to lock.
        shared: Share the lock with other processes that also pass `shared`.
        wait: Wait without limit while another process has locked it.

    Raises:
        UserError: Another process has locked the folder.
    """
    lease = _Lease(folder, shared=shared)
    with _marked(lease.token):
        while True:
            try:
                lease.acquire()  # which watches any other holder for a while
                break
            except _Held:
                if not wait:
                    raise
        stop = threading.Event()
        renewal = threading.Thread(target=lease.renew, args=(stop,), daemon=True)
        renewal.start()
        try:
            yield
        finally:
            stop.set()
            renewal.join()
            lease.release()


@dataclass
class _Lease:
    folder: RemotePath
    shared: bool
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    count: int = 0

    @property
    def file(self) -> RemotePath:
        name = f"shared-{self.token}" if self.shared else "alone"
        return self.folder / ".lock" / name

    def content(self) -> bytes:
        state = {
            "token": self.token,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "count": self.count,
        }
        return json.dumps(state).encode()

    def acquire(self) -> None:
        """Create the file and then look for others, so that one of two rivals sees the other."""
        replaced = False
        while not self.file.create(self.content()):
            self._evict_if_dead(self.file)
            replaced = True
        for other in self._others():
            try:
                self._evict_if_dead(other)
            except UserError:
                self.release()
                raise
        if replaced:
            time.sleep(SETTLED_AFTER)
        if not self._is_mine():
            raise _held_by(self.folder, b"")

    def release(self) -> None:
        """Delete the file, unless it now belongs to another process."""
        if self._is_mine():
            self.file.unlink(missing_ok=True)

    def _is_mine(self) -> bool:
        try:
            return bool(json.loads(self.file.read())["token"] == self.token)
        except (FileNotFoundError, *_ODD):
            return False

    def _others(self) -> list[RemotePath]:
        """Return the files of the holders that conflict with this holder."""
        lock = self.folder / ".lock"
        return [
            lock / name
            for name in sorted(lock.files())
            if lock / name != self.file and not (self.shared and name != "alone")
        ]

    def _evict_if_dead(self, file: RemotePath) -> None:
        """Delete the file of another holder if the holder is dead.

        Raises:
            UserError: The holder is alive.
        """
        try:
            before = file.read()
            if not _has_ended(before):
                _LOG.info(
                    "%s is locked by %s: watching for up to %g s whether it is alive",
                    self.folder,
                    _owner(before),
                    DEAD_AFTER,
                )
            end = time.monotonic() + DEAD_AFTER
            while not _has_ended(before) and time.monotonic() < end:
                time.sleep(1)
                if file.read() != before:
                    raise _held_by(self.folder, before)
            if file.read() == before:  # otherwise another process has just taken it over
                file.unlink(missing_ok=True)
        except FileNotFoundError:  # its holder has just released it
            return

    def renew(self, stop: threading.Event) -> None:
        """Rewrite the file at intervals until `stop` is set."""
        renewed = time.monotonic()
        while not stop.wait(RENEWED_AFTER):
            try:
                if self._is_mine():
                    self.count += 1
                    self.file.write(self.content())
                    renewed = time.monotonic()
                    continue
            except UserError as error:  # if the storage fails, the work waits or fails too
                _LOG.warning("%s", error)
                if time.monotonic() - renewed < DEAD_AFTER:
                    continue
            print_message(
                f"{self.folder} may have been taken over by another process, because this one "
                f"could not renew its lease for more than {DEAD_AFTER:g} s: this process exits "
                "now. Finished work is kept."
            )
            os._exit(2)


_ODD = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
"""Errors that the content of a lease can cause if another program wrote it."""


class _Held(UserError):
    """Raised if another process holds a folder."""


def _held_by(folder: RemotePath, content: bytes) -> UserError:
    return _Held(
        f"{folder} is being written by {_owner(content)}; wait for it or choose another --output."
    )


def _owner(content: bytes) -> str:
    try:
        state = json.loads(content)
        return f"process {state['process']} on host {state['host']}"
    except _ODD:
        return "another process"


@contextmanager
def _marked(token: str) -> Iterator[None]:
    """Lock this holder's mark while the block runs."""
    path = _mark(token)
    with disk_errors_explained(path):
        file = path.open("x")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _mark(token: str) -> Path:
    return Path(tempfile.gettempdir(), f"corpusmill-{uuid.UUID(token).hex}.lock")


def _has_ended(content: bytes) -> bool:
    """Return whether the holder is known to be a process of this machine that has ended."""
    try:
        with _mark(json.loads(content)["token"]).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, AttributeError, *_ODD):  # the holder is alive, or on another machine
        return False
    return True
