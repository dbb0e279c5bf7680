"""Records that are mended as they are read: --bad-utf8 replace, --nul remove.

What is invalid in the UTF-8 of a record becomes U+FFFD, as WHATWG's decoder has it, and so does
half of a surrogate pair in JSON. The place of a record, and so its identity, is that of its bytes.
"""

import re
from collections.abc import Iterator

from pipelines.read.lines import Parse
from pipelines.read.record import Damage, Reason, Record, RecordReader, strings_in
from pipelines.read.salvage import Partial

REJECT, REPLACE, REMOVE = "reject", "replace", "remove"

_MENDED = ("bad-utf8", "bad-json")
"""Reasons of damage that invalid UTF-8 or half of a surrogate pair may be."""
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in JSON: a pair of surrogates, a lone one, or another."""


class MendingReader:
    """Iterates over what another reader yields, and mends it where it can."""

    def __init__(self, reader: RecordReader, parse: Parse, *, bad_utf8: str, nul: str) -> None:
        """Make a reader.

        Args:
            reader: The other one.
            parse: Makes a record of the bytes of one.
            bad_utf8: REJECT or REPLACE.
            nul: REJECT or REMOVE.
        """
        self._reader = reader
        self._parse = parse
        self._replaces = bad_utf8 == REPLACE
        self._removes = nul == REMOVE

    @property
    def crc32c(self) -> int | None:
        """Checksum of the split's bytes as stored."""
        return self._reader.crc32c

    @property
    def cut(self) -> Reason | None:
        """Why an unknown number of records is missing at the end; None if none is."""
        return self._reader.cut

    @property
    def done(self) -> int:
        """How much of the split has been read so far."""
        return self._reader.done

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield the records, and damage that nothing mends."""
        for item in self._reader:
            if self._replaces:
                item = self._decoded(item)  # noqa: PLW2901 - the same record
            if self._removes and isinstance(item, Record):
                for container, key, text in strings_in(item.value):
                    if "\0" in text:
                        container[key] = text.replace("\0", "")
            yield item

    def _decoded(self, item: Record | Damage) -> Record | Damage:
        """Return the record whose bytes are all there but for their encoding, else the item."""
        lacks = (
            item.reason in _MENDED if isinstance(item, Damage) else isinstance(item.value, Partial)
        )
        if not lacks or len(item.raw) != item.length:
            return item
        mended = self._parse(item.offset, mend_json(item.raw), None)
        if not isinstance(mended, Record):
            return item
        return Record(item.offset, item.length, mended.value, item.raw)


def mend_json(raw: bytes) -> bytes:
    r"""Return bytes with invalid sequences, and lone surrogates (\ud800), replaced."""
    valid = raw.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], valid)
