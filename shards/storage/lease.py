"""A lock on a folder behind a URL, where no lock ends with its process: a lease that is renewed.

    .lock/alone             who holds the folder alone; the storage lets only one writer make it
    .lock/shared-<random>   who holds it together with others

A holder writes its file anew every few seconds. One whose file does not change for longer is dead,
and so is one of this machine whose process is gone: its lease is taken over. No clock is compared.
"""

import json
import logging
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shards.errors import UserError
from shards.storage.remote import RemotePath

RENEWED_AFTER = 10.0
"""Seconds between two renewals."""

DEAD_AFTER = 180.0
"""Seconds without renewal after which a holder is taken for dead: two requests may hang before."""

SETTLED_AFTER = 3.0
"""Seconds after taking a dead holder's place until it is sure that nobody else took it as well."""

_LOG = logging.getLogger("corpusmill")


@contextmanager
def leased(folder: RemotePath, *, shared: bool) -> Iterator[None]:
    """Hold a folder while the block runs.

    A process that finds its lease taken over, after a pause of minutes, ends at once: what it wrote
    are whole files, which do no harm.

    Raises:
        UserError: Another process holds the folder.
    """
    lease = _Lease(folder, shared=shared)
    lease.take()
    stop = threading.Event()
    renewal = threading.Thread(target=lease.renew, args=(stop,), daemon=True)
    renewal.start()
    try:
        yield
    finally:
        stop.set()
        renewal.join()
        lease.leave()


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
            "machine": _machine(),
            "process": os.getpid(),
            "started": _started(os.getpid()),
            "count": self.count,
        }
        return json.dumps(state).encode()

    def take(self) -> None:
        """Write the file, then look for others: of two that do so at least one sees the other."""
        replaced = False
        while not self.file.create(self.content()):
            self._replace(self.file)
            replaced = True
        for other in self._others():
            try:
                self._replace(other)
            except UserError:
                self.leave()
                raise
        if replaced:
            time.sleep(SETTLED_AFTER)
        if not self._is_mine():
            raise _held(self.folder, b"")

    def leave(self) -> None:
        """Delete the file, unless it is another's by now."""
        if self._is_mine():
            self.file.unlink(missing_ok=True)

    def _is_mine(self) -> bool:
        try:
            return bool(json.loads(self.file.read())["token"] == self.token)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return False

    def _others(self) -> list[RemotePath]:
        """Return the files of holders that exclude this one."""
        lock = self.folder / ".lock"
        return [
            lock / name
            for name in sorted(lock.files())
            if lock / name != self.file and not (self.shared and name != "alone")
        ]

    def _replace(self, file: RemotePath) -> None:
        """Delete the file of a holder that is dead.

        Raises:
            UserError: It lives.
        """
        try:
            before = file.read()
            if not _is_gone(before):
                _LOG.info(
                    "%s was left locked by %s: looking for %g s whether it lives",
                    self.folder,
                    _owner(before),
                    DEAD_AFTER,
                )
                end = time.monotonic() + DEAD_AFTER
                while time.monotonic() < end:
                    time.sleep(1)
                    if file.read() != before:
                        raise _held(self.folder, before)
            if file.read() == before:  # else another has taken it over meanwhile
                file.unlink(missing_ok=True)
        except FileNotFoundError:  # its holder has just ended
            return

    def renew(self, stop: threading.Event) -> None:
        """Write the file anew until told to stop."""
        renewed = time.monotonic()
        while not stop.wait(RENEWED_AFTER):
            try:
                if self._is_mine():
                    self.count += 1
                    self.file.write(self.content())
                    renewed = time.monotonic()
                    continue
            except UserError as error:  # the storage is away: work fails or waits as well
                _LOG.warning("%s", error)
                if time.monotonic() - renewed < DEAD_AFTER:
                    continue
            sys.stderr.write(
                f"{self.folder} may have been taken over by another process while this one could "
                f"not say for more than {DEAD_AFTER:g} s that it lives: it ends here. Finished "
                "work is kept.\n"
            )
            sys.stderr.flush()
            os._exit(2)


def _held(folder: RemotePath, content: bytes) -> UserError:
    return UserError(
        f"{folder} is being written by {_owner(content)}; wait for it or choose another --output."
    )


def _owner(content: bytes) -> str:
    try:
        state = json.loads(content)
        return f"process {state['process']} on host {state['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _is_gone(content: bytes) -> bool:
    """Return whether the holder is a process of this machine that has ended."""
    try:
        state = json.loads(content)
        here: bool = state["machine"] == _machine()
        return here and _started(state["process"]) != str(state["started"])
    except (ValueError, KeyError, TypeError):
        return False


def _machine() -> str:
    """Return what tells this machine since its start, and its set of processes, from others."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _started(process: int) -> str:
    """Return when a process of this machine started, by its kernel's count; "" if it has ended.

    Process numbers are used again.
    """
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[19]
