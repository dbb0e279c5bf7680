"""What stands around the records of a JSON array file, and what to say of other files."""

import re

from pipelines.sources import InputFile, open_input
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


def check_head(file: InputFile) -> None:
    """Check that a file begins as an array of objects, bare or under the key "RECORDS".

    Raises:
        UserError: It does not; the message says what it is instead.
    """
    with open_input(file.path) as handle:
        head = handle.read(HEAD_BYTES)
    elements = head[array_start(head, file.path) :].lstrip()
    if elements[:1] in b"{]" or re.search(rb"\{\s*\"", elements):
        return
    raise UserError(
        f"The input {file.path} is a JSON array, but not of objects: its first element begins "
        f'with {_shown(elements)}. Expected was [{{"title": ..., "content": ...}}, ...].'
    )


def array_start(head: bytes, path: str) -> int:
    """Return the offset of the array's first element, or of the blanks before it.

    Raises:
        UserError: No array begins in `head`, bare or under the key "RECORDS".
    """
    match = _HEAD.match(head)
    if match:
        return match.end()
    raise UserError(
        f"The input {path} holds no JSON array of objects: {_likeness(head)}. Expected was "
        '[{...}, ...] or {"RECORDS": [{...}, ...]}, in UTF-8.'
    )


def _likeness(head: bytes) -> str:
    for magic, kind in _ARCHIVES.items():
        if head.startswith(magic):
            return f"it is a {kind} archive, so unpack it first"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it is UTF-16, so convert it to UTF-8 first"
    if re.match(rb"\s*\{.*\}\s*\n\s*\{", head):
        return "it has one object per line (JSON lines)"
    if re.match(rb"\s*\{", head):
        return f'it is an object without the key "RECORDS" near its start: {_shown(head)}'
    return f"it begins with {_shown(head)}"


def _shown(text: bytes) -> str:
    return repr(text[:40].decode(errors="replace"))
