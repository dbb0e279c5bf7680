"""A dataset and its tables for the pages, which are reopened when the dataset has changed."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.manifest import NAME
from shards.reader import Dataset
from shards.removals import Rows, current_removals
from shards.sampling.trace import Tracer
from shards.storage.disk import disk_errors_explained
from shards.storage.remote import RemotePath
from shards.text_hash import ERASED_ORDER
from shards.view.audit import Audit
from shards.view.html import Page
from shards.view.search import ShardSearch
from shards.view.similarity import SimilarityIndex

SECONDS = 2.0
"""The maximum number of seconds that a page may search."""


class RedactedDataset(Dataset):
    """A dataset at a number, without the documents that were removed later."""

    @cached_property
    def removed(self) -> Mapping[str, Rows]:
        """The rows that are removed now, by the path of their shard's entry."""
        return current_removals(self.directory, self.manifest)[1]


@dataclass
class Viewer:
    """A dataset that the viewer shows."""

    dataset: Dataset
    tracer: Tracer | None
    """The tracer of the run whose steps are shown."""
    seconds: float
    """The maximum number of seconds that a search may take."""

    @cached_property
    def shards(self) -> ShardSearch:
        """The documents in shards."""
        return ShardSearch(self.dataset)

    @cached_property
    def audit(self) -> Audit:
        """The tables of all records."""
        return Audit(self.dataset)

    @cached_property
    def similarity(self) -> SimilarityIndex:
        """The signatures."""
        return SimilarityIndex(self.dataset)

    def page(self, template: str, **values: Any) -> Page:
        """Return a page of the dataset: a template with the values to fill in."""
        shared = {"name": self.dataset.shown_directory, "has_run": self.tracer is not None}
        return Page(template, {**shared, **values})

    def redaction(self, text: str | None) -> str:
        """Return why a text or record outside the shards is hidden; "" if it is shown.

        Args:
            text: The text of a dropped document; None for a record that could not be read.
        """
        if self.dataset.removed:
            return "documents were removed, and this may be a copy of one"
        owner = None if text is None else self.similarity.owner(text)
        if owner is not None and owner.order == ERASED_ORDER:
            return "a document with this text was removed"
        return ""


class ReloadingViewer:
    """The viewer of a dataset, which reopens the dataset whenever its manifest has changed."""

    def __init__(
        self, name: str, *, tracer: Tracer | None = None, seconds: float = SECONDS
    ) -> None:
        """Open a dataset.

        Args:
            name: The folder of the dataset, or DIR@n.
            tracer: The tracer of the run whose steps are shown.
            seconds: The maximum number of seconds that a search may take.

        Raises:
            UserError: There is no such dataset on a disk of this machine.
        """
        self._name = name
        self._lock = threading.Lock()
        dataset = RedactedDataset.open(name)
        if isinstance(dataset.directory, RemotePath):
            raise UserError(
                f"{dataset.directory} is not on a disk of this machine, where its files can be "
                "mapped: start the viewer where the dataset is, or copy it first."
            )
        self._path = dataset.directory / NAME
        self._viewer = Viewer(dataset, tracer, seconds)
        self._version = _version(self._path)
        self.message = self._viewer.page
        """Makes a page of a message, whether the dataset can be opened or not."""

    def viewer(self) -> Viewer:
        """Return the dataset as it is now.

        Raises:
            UserError: The dataset has changed and can no longer be opened.
        """
        with self._lock:
            version, last = _version(self._path), self._viewer
            if version != self._version:
                dataset = RedactedDataset.open(self._name)
                self._viewer = Viewer(dataset, last.tracer, last.seconds)
                self._version = version
            return self._viewer


def _version(path: Path) -> tuple[int, int]:
    """Return values that change whenever a manifest is replaced."""
    with disk_errors_explained(path):
        state = path.stat()
    return state.st_ino, state.st_mtime_ns
