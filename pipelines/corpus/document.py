"""Documents, which a corpus makes from records, and the error that rejects a record.

A *record* is an object or row of an input file; a *document* is a text that is made from it. A
record may have several documents, which are numbered by their ordinal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """A text of a record, with its provenance."""

    text: str
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """The values of the corpus's columns, by name."""
    reason: str | None = None
    """The reason to drop the document; None to keep it."""
    prompt: str = ""
    """A text that precedes the text and carries no loss."""
    clean: str = ""
    """The level of cleaning (none, whitespace or repair) unless --clean sets one; "" means
    repair."""


class Rejected(Exception):
    """An error that a corpus raises for a malformed record; the message is the reason."""

    def __init__(self, reason: str, field: str = "") -> None:
        """Create the error.

        Args:
            reason: The reason, one of QUARANTINE_REASONS.
            field: The field that the corpus needs, for messages; "" if there is none.
        """
        super().__init__(reason)
        self.field = field
