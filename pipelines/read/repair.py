"""Records that are repaired as they are read: --bad-utf8 replace, --nul remove.

What is invalid in the UTF-8 of a record becomes U+FFFD, as WHATWG's decoder has it, and so does
half of a surrogate pair in JSON. The place of a record, and so its identity, is that of its bytes.
"""

import re
from dataclasses import dataclass

from pipelines.read.lines import Parse
from pipelines.read.record import Damage, Record, strings_in
from pipelines.read.salvage import Partial

REJECT, REPLACE, REMOVE = "reject", "replace", "remove"

_REPAIRED = ("bad-utf8", "bad-json")
"""Reasons of damage that invalid UTF-8 or half of a surrogate pair may be."""
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in JSON: a pair of surrogates, a lone one, or another."""


@dataclass(frozen=True)
class Repair:
    """Repairs records where it can."""

    parse: Parse
    """Makes a record of the bytes of one."""
    bad_utf8: str
    """REJECT or REPLACE."""
    nul: str
    """REJECT or REMOVE."""

    def __call__(self, item: Record | Damage) -> Record | Damage:
        """Return a record or damage as it is, or repaired."""
        if self.bad_utf8 == REPLACE:
            item = self._decoded(item)
        if self.nul == REMOVE and isinstance(item, Record):
            for container, key, text in strings_in(item.value):
                if "\0" in text:
                    container[key] = text.replace("\0", "")
        return item

    def _decoded(self, item: Record | Damage) -> Record | Damage:
        """Return the record whose bytes are all there but for their encoding, else the item."""
        lacks = (
            item.reason in _REPAIRED
            if isinstance(item, Damage)
            else isinstance(item.value, Partial)
        )
        if not lacks or len(item.raw) != item.length:
            return item
        repaired = self.parse(item.offset, repair_json(item.raw), None)
        if not isinstance(repaired, Record):
            return item
        return Record(item.offset, item.length, repaired.value, item.raw)


def repair_json(raw: bytes) -> bytes:
    r"""Return bytes with invalid sequences, and lone surrogates (\ud800), replaced."""
    valid = raw.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], valid)
