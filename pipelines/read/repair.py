"""Repairs records as they are read, for --bad-utf8 replace and --nul remove.

Invalid UTF-8 in a record becomes U+FFFD, as in WHATWG's decoder, and so does a lone surrogate in
JSON. The position of a record, and so its identity, remains that of its original bytes.
"""

import re
from collections.abc import Callable

from pipelines.read.input_format import REMOVE, REPLACE, InputFormat
from pipelines.read.json_object import Partial
from pipelines.read.record import Damage, Reason, Record, strings_in

Parse = Callable[[int, bytes, Reason | None], Record | Damage | None]
"""A function that parses the bytes of a record, like `object_record`."""

_REPAIRED = ("bad-utf8", "bad-json")
"""The reasons of damage that invalid UTF-8 or a lone surrogate can cause."""
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""A JSON escape: a pair of surrogates, a lone surrogate, or any other escape."""


def repaired(item: Record | Damage, input_format: InputFormat, *, parse: Parse) -> Record | Damage:
    """Repair a record or damage as the options request, if possible, and return the result."""
    if input_format.bad_utf8 == REPLACE:
        item = _decoded(item, parse)
    if input_format.nul == REMOVE and isinstance(item, Record):
        for container, key, text in strings_in(item.value):
            if "\0" in text:
                container[key] = text.replace("\0", "")
    return item


def _decoded(item: Record | Damage, parse: Parse) -> Record | Damage:
    """Return an item's record if only the encoding of its bytes is wrong; else return the item."""
    lacks = (
        item.reason in _REPAIRED if isinstance(item, Damage) else isinstance(item.value, Partial)
    )
    if not lacks or len(item.raw) != item.length:
        return item
    found = parse(item.offset, repair_json(item.raw), None)
    if not isinstance(found, Record):
        return item
    return Record(item.offset, item.length, found.value, item.raw)


def repair_json(raw: bytes) -> bytes:
    r"""Return bytes in which U+FFFD replaces invalid sequences and lone surrogates (\ud800)."""
    valid = raw.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], valid)
