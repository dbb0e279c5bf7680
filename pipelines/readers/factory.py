"""What opens the splits of a corpus: all records, or only those that another run rejected."""

from collections.abc import Mapping
from typing import Any, Protocol

from pipelines.inputs.split import Split
from pipelines.readers.reading import Reading, open_reader
from pipelines.readers.record import Reader
from pipelines.segments.rows import Verdict


class ReaderFactory(Protocol):
    """Opens the splits of a corpus."""

    def facts(self) -> Mapping[str, Any]:
        """Return what decides bytes besides the options, by flag name, JSON-able."""
        ...

    def reading(self, reading: Reading, /) -> Reading:
        """Return how files are read, given how their corpus reads them."""
        ...

    def reader(self, split: Split, reading: Reading) -> Reader:
        """Return a reader of a split; `reading` is that of the corpus."""
        ...

    def selected(self, verdict: Verdict, split: Split) -> Verdict:
        """Return the documents of a batch that belong to the run."""
        ...


class AllRecords:
    """Reads every record."""

    def facts(self) -> Mapping[str, Any]:
        """Return nothing: the options say it all."""
        return {}

    def reading(self, reading: Reading, /) -> Reading:
        """Return the reading of the corpus."""
        return reading

    def reader(self, split: Split, reading: Reading) -> Reader:
        """Return a reader of a split."""
        return open_reader(split, reading)

    def selected(self, verdict: Verdict, split: Split) -> Verdict:  # noqa: ARG002 - as ReaderFactory has it
        """Return all documents."""
        return verdict


ALL_RECORDS = AllRecords()
