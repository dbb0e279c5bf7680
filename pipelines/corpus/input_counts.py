"""Counts, for each input file, the bytes read and the records that --sample leaves out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

from pipelines.corpus.batcher import BatchPiece
from pipelines.read.record import TRUNCATED
from pipelines.segments.rows import PATH, QUARANTINE_REASONS, FilterResult

_COUNTED = QUARANTINE_REASONS - TRUNCATED


@dataclass(frozen=True, slots=True)
class InputCounts:
    """The counts so far for the files of one source, by path."""

    unsampled: Counter[str] = field(default_factory=Counter)
    """The number of records that --sample leaves out."""
    bytes: Counter[str] = field(default_factory=Counter)
    """The approximate size, in bytes, of the records that --sample chooses."""
    unread_bytes: Counter[str] = field(default_factory=Counter)
    """The approximate size, in bytes, of the records that cannot be read; the cut-off end of a file
    counts as no record."""

    def add(self, pieces: Sequence[BatchPiece], results: Iterable[FilterResult]) -> None:
        """Add records that --sample has chosen.

        Args:
            pieces: The records.
            results: The results for records that are left out.
        """
        for piece in pieces:
            self.bytes[piece.split.relative] += sum(item.size for item in piece.items)
        rejected = {place for result in results for place in _rejected(result)}
        if rejected:
            for piece in pieces:
                path = piece.split.relative
                sizes = (item.size for item in piece.items if (path, item.offset) in rejected)
                self.unread_bytes[path] += sum(sizes)

    def of(self, path: str) -> dict[str, int]:
        """Return the counts of one file, by the name of the count."""
        return {each.name: getattr(self, each.name)[path] for each in fields(self)}


def _rejected(result: FilterResult) -> list[tuple[str, int]]:
    """Return the path and position of each record that cannot be read."""
    reasons = result.reasons.to_pylist()
    if _COUNTED.isdisjoint(reasons):
        return []
    places = (result.batch[name].to_pylist() for name in (PATH.name, "position"))
    return [
        (path, position)
        for path, position, reason in zip(*places, reasons, strict=True)
        if reason in _COUNTED
    ]
