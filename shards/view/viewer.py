"""What the pages draw from: a dataset and what is known of it, opened anew when it has changed."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from shards.erasure import BARE
from shards.errors import UserError
from shards.manifest import NAME, TRAIN, VALIDATION, Generation
from shards.reader import Dataset
from shards.removals import Rows, removed_by_now
from shards.storage.disk import disk_errors_explained
from shards.storage.remote import RemotePath
from shards.trace import Tracer
from shards.view.audit import Audit
from shards.view.scan import Budget
from shards.view.search import ShardSearch
from shards.view.similarity import SimilarityIndex

SECONDS = 2.0
"""What a page may spend on searching."""


@dataclass(frozen=True, kw_only=True)
class Home:
    """Where a shard belongs."""

    generation: Generation
    source: str
    split: str
    first: int
    """Documents of the same source and split before it."""


class RedactedDataset(Dataset):
    """A dataset at a number; what was removed later on is removed as well."""

    @cached_property
    def removed(self) -> Mapping[str, Rows]:
        """The rows that are removed by now, by the path of their shard's entry."""
        return removed_by_now(self.directory, self.manifest)[1]


@dataclass
class Viewer:
    """A dataset that is looked at."""

    dataset: Dataset
    tracer: Tracer | None = None
    """Of the run whose steps are shown."""
    seconds: float = field(default=SECONDS, kw_only=True)

    def budget(self) -> Budget:
        """Return what the search that begins now may spend."""
        return Budget(self.seconds)

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

    def redaction(self, text: str | None) -> str:
        """Return why a text or record outside the shards is not shown; "" if it is.

        Args:
            text: Of a dropped document; None of what could not be read.
        """
        if self.dataset.removed:
            return "documents were removed, and this may be a copy of one"
        owner = None if text is None else self.similarity.owner(text)
        if owner is not None and owner.order == BARE:
            return "a document with this text was removed"
        return ""

    @cached_property
    def homes(self) -> dict[str, Home]:
        """Where each shard belongs, by its path."""
        homes: dict[str, Home] = {}
        first: Counter[tuple[str, str]] = Counter()
        for generation, name, source in self.dataset.manifest.source_entries():
            for split in (TRAIN, VALIDATION):
                for entry in source.split(split):
                    homes[entry.path] = Home(
                        generation=generation, source=name, split=split, first=first[name, split]
                    )
                    first[name, split] += entry.documents
        return homes


class Opening:
    """A dataset by its name: whoever asks for it gets it as its manifest is by now."""

    def __init__(
        self, name: str, *, tracer: Tracer | None = None, seconds: float = SECONDS
    ) -> None:
        """Open a dataset.

        Args:
            name: Its folder, or DIR@n.
            tracer: Of the run whose steps are shown.
            seconds: What a page may spend on searching.

        Raises:
            UserError: There is none on a disk of this machine.
        """
        self._name = name
        self._tracer = tracer
        self._seconds = seconds
        self._lock = threading.Lock()
        self._viewer = self._opened()
        self._version = self._now()

    def viewer(self) -> Viewer:
        """Return what pages draw from.

        Raises:
            UserError: The dataset is no longer what it was, and cannot be opened.
        """
        with self._lock:
            version = self._now()
            if version != self._version:
                self._viewer, self._version = self._opened(), version
            return self._viewer

    def _opened(self) -> Viewer:
        dataset = RedactedDataset.open(self._name)
        if isinstance(dataset.directory, RemotePath):
            raise UserError(
                f"{dataset.directory} is not on a disk of this machine, where its files can be "
                "mapped: start the viewer where the dataset is, or copy it first."
            )
        return Viewer(dataset, self._tracer, seconds=self._seconds)

    def _now(self) -> tuple[int, int]:
        """Return what changes whenever the manifest is replaced."""
        path = self._viewer.dataset.directory / NAME
        assert not isinstance(path, RemotePath)
        with disk_errors_explained(path):
            state = path.stat()
        return state.st_ino, state.st_mtime_ns
