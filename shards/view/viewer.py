"""What the pages draw from: a dataset and what is known of it, opened once."""

from dataclasses import dataclass, field
from functools import cached_property

from shards.manifest import TRAIN, VALIDATION, Generation
from shards.reader import Dataset
from shards.trace import Tracer
from shards.view.alike import Alike
from shards.view.audit import Audit
from shards.view.hidden import Hidden
from shards.view.kept import Kept
from shards.view.scan import Budget

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


@dataclass
class Viewer:
    """A dataset that is looked at."""

    dataset: Dataset
    tracer: Tracer | None = None
    """Of the run whose steps are shown."""
    seconds: float = field(default=SECONDS, kw_only=True)

    def budget(self) -> Budget:
        """Return what the page that begins now may spend."""
        return Budget(self.seconds)

    @cached_property
    def kept(self) -> Kept:
        """The documents in shards."""
        return Kept(self.dataset)

    @cached_property
    def audit(self) -> Audit:
        """The tables of all records."""
        return Audit(self.dataset)

    @cached_property
    def alike(self) -> Alike:
        """The signatures."""
        return Alike(self.dataset)

    @cached_property
    def hidden(self) -> Hidden:
        """What is not to be shown."""
        return Hidden(self.dataset, self.alike)

    @cached_property
    def homes(self) -> dict[str, Home]:
        """Where each shard belongs, by its path."""
        homes, first = (
            {},
            dict.fromkeys(
                ((name, split) for name in self.dataset.sources for split in (TRAIN, VALIDATION)), 0
            ),
        )
        for generation, name, source in self.dataset.manifest.source_entries():
            for split in (TRAIN, VALIDATION):
                for entry in source.split(split):
                    homes[entry.path] = Home(
                        generation=generation, source=name, split=split, first=first[name, split]
                    )
                    first[name, split] += entry.documents
        return homes
