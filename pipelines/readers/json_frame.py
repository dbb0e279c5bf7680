"""What stands around the records of a JSON array file, and what to say of other files."""

import re

from pipelines.readers.compressed import SUFFIXES
from shards.errors import UserError

HEAD_BYTES = 64 << 10
"""Within so many bytes the array has to begin."""

_SCALAR = rb'(?:"(?:[^"\\]|\\.)*+"|[-+.0-9a-zA-Z]++)'
_FIELD = rb'"(?:[^"\\]|\\.)*+"\s*+:\s*+' + _SCALAR + rb"\s*+"
_HEAD = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:\[|\{\s*+(?:" + _FIELD + rb',\s*+)*?"RECORDS"\s*+:\s*+\[)', re.S
)
TAIL = re.compile(rb"\]\s*+(?:(?:,\s*+" + _FIELD + rb")*+\})?", re.S)
"""The end of the array and, where it stands in an object, of that."""

_ARCHIVES = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"Rar!": "rar",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"7z\xbc\xaf": "7z",
}
_ENDINGS = {kind: suffix for suffix, kind in SUFFIXES.items()}


def check_array(head: bytes, path: str) -> None:
    """Check that a file begins as an array of objects, bare or under the key "RECORDS".

    Args:
        head: Its first HEAD_BYTES, unpacked.
        path: Where it is.

    Raises:
        UserError: It does not; the message says what it is instead.
    """
    start = array_start(head)
    if start is None:
        raise UserError(no_array(head, path))
    elements = head[start:].lstrip()
    if elements[:1] in b"{]" or re.search(rb"\{\s*\"", elements):
        return
    raise UserError(
        f"The input {path} is a JSON array, but not of objects: its first element begins "
        f'with {shown(elements)}. Expected was [{{"title": ..., "content": ...}}, ...].'
    )


def array_start(head: bytes) -> int | None:
    """Return the offset of the array's first element, or of the blanks before it.

    None when no array begins in `head`, bare or under the key "RECORDS".
    """
    match = _HEAD.match(head)
    return match.end() if match else None


def no_array(head: bytes, path: str) -> str:
    """Return what to say of a file that holds no array."""
    return (
        f"The input {path} holds no JSON array of objects: {_likeness(head)}. Expected was "
        '[{...}, ...] or {"RECORDS": [{...}, ...]}, in UTF-8.'
    )


def foreign(head: bytes) -> str | None:
    """Return what a file is that holds no UTF-8 text, None when it may hold some."""
    for magic, kind in _ARCHIVES.items():
        if head.startswith(magic):
            ending = _ENDINGS.get(kind)
            named = f" or give its name the ending {ending}" if ending else ""
            return f"it is a {kind} archive, so unpack it first{named}"
    if head.startswith(b"PAR1"):
        return "it is a Parquet file, so give its name the ending .parquet"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it is UTF-16, so convert it to UTF-8 first"
    return None


def _likeness(head: bytes) -> str:
    other = foreign(head)
    if other:
        return other
    if re.match(rb"\s*\{.*\}\s*\n\s*\{", head):
        return "it has one object per line (JSON lines)"
    if re.match(rb"\s*\{", head):
        return f'it is an object without the key "RECORDS" near its start: {shown(head)}'
    return f"it begins with {shown(head)}"


def shown(text: bytes) -> str:
    """Return the first of some bytes as a message names them."""
    return repr(text[:40].decode(errors="replace"))
