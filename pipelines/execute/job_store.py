"""Stores the values that the parts of one job share, by name, in this process or in files.

A job's plans, items and commit run in the driver if the runner is the DirectRunner, and in any
workers of an engine. The values that they share are too large for the job's graph, which contains
only the work folder and the job's identifier. In the driver the values stay in memory; elsewhere
they are files of .work/job/ID.
"""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shards.maintenance.prune import remove_work
from shards.storage.files import atomic_write, read_blocks, size_if_there
from shards.storage.remote import AnyPath

FOLDER = "job"
"""The folder of the values inside the work folder."""

_IN_MEMORY: dict[str, dict[str, Any]] = {}
"""The values of the jobs that run completely in this process, by identifier."""


@dataclass(frozen=True)
class JobStore:
    """A store of values that the parts of a job share."""

    work: AnyPath
    """The folder of intermediate files."""
    run: str
    """The identifier of the job."""

    @contextmanager
    def in_memory(self) -> Iterator[None]:
        """Keep the values of this job in this process's memory while the block runs."""
        _IN_MEMORY[self.run] = {}
        try:
            yield
        finally:
            del _IN_MEMORY[self.run]

    @property
    def is_local(self) -> bool:
        """Whether all parts of the job run in this process."""
        return self.run in _IN_MEMORY

    def put(self, name: str, value: Any) -> None:
        """Set a value; a job that an engine restarts sets the same value again."""
        if self.is_local:
            _IN_MEMORY[self.run][name] = value
            return
        with atomic_write(self._path(name)) as handle:
            handle.write(pickle.dumps(value))

    def get(self, name: str) -> Any:
        """Return a value; None if the value is not set."""
        if self.is_local:
            return _IN_MEMORY[self.run].get(name)
        path = self._path(name)
        if size_if_there(path) < 0:
            return None
        return pickle.loads(b"".join(map(bytes, read_blocks(path))))

    def forget(self) -> None:
        """Delete the files of this job, once it has ended."""
        remove_work(self.work, f"{FOLDER}/{self.run}")

    def _path(self, name: str) -> AnyPath:
        return self.work / FOLDER / self.run / f"{name}.pickle"
