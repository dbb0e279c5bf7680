"""How much of a split was read: records that --sample leaves out, and bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipelines.readers.record import CUT, Damage, Record
from pipelines.segments.rows import REJECTS, Verdict

_COUNTED = REJECTS - CUT


@dataclass(slots=True)
class Amounts:
    """How much of a split was read so far."""

    unsampled: int = 0
    """Records that --sample leaves out."""
    bytes: int = 0
    """About how many bytes of input the other records take."""
    unread_bytes: int = 0
    """About how many of them those take that cannot be read, without the ends of cut files."""

    def add(self, items: Sequence[Record | Damage], verdicts: Iterable[Verdict]) -> None:
        """Add records that --sample takes.

        Args:
            items: The records.
            verdicts: On those that are left out.
        """
        self.bytes += sum(item.size for item in items)
        for verdict in verdicts:
            reasons = verdict.reasons.to_pylist()
            if not _COUNTED.isdisjoint(reasons):
                positions = verdict.batch["position"].to_pylist()
                rejected = {
                    position
                    for position, reason in zip(positions, reasons, strict=True)
                    if reason in _COUNTED
                }
                self.unread_bytes += sum(item.size for item in items if item.offset in rejected)
