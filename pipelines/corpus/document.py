"""The documents that a corpus makes of a record, or a reason to reject it.

A *record* is what a reader finds in an input file; a *document* is a text made of it. One record
may make several, which are numbered by their ordinal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """A text found in a record, with its provenance; `reason` says why to leave it out, if so."""

    text: str
    provenance: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    prompt: str = ""
    """Precedes the text and carries no loss."""
    clean: str = ""
    """How much of both is cleaned unless --clean is given: none, whitespace, or repair ("")."""


class Rejected(Exception):
    """Raised by a corpus for a malformed record, with the reason as its message."""

    def __init__(self, reason: str, field: str = "") -> None:
        """Make it.

        Args:
            reason: One of QUARANTINE_REASONS.
            field: The field that the corpus needs, if there is one: it is named to the user.
        """
        super().__init__(reason)
        self.field = field
