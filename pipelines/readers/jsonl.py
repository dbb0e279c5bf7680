"""JSON lines: an object on each line."""

from typing import Any

import orjson

from pipelines.readers.json_frame import array_start, foreign, shown
from pipelines.readers.json_scan import diagnosis
from pipelines.readers.record import RAW_BYTES, Damage, Reason, Record
from shards.errors import UserError


def object_line(at: int, line: bytes, broken: Reason | None) -> Record | Damage | None:
    """Return the record that a line holds, damage where it holds none, None for a blank line.

    Args:
        at: Where it begins.
        line: Its bytes, without the line feed.
        broken: Why it may lack its end; an object that is whole is a record all the same.
    """
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = None
    if type(value) is dict:
        return Record(at, len(line), value, line)
    if not line.strip():
        return None
    return Damage(at, len(line), broken or diagnosis(line.strip()), line[:RAW_BYTES])


def check_objects(head: bytes, path: str) -> None:
    """Check that a file begins as objects, one on a line; damaged lines may stand between them.

    Args:
        head: Its first bytes, unpacked; the last line may be cut off.
        path: Where it is.

    Raises:
        UserError: It does not; the message says what it is instead.
    """
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    last = lines.pop()
    found = [_value(line) for line in lines if line]
    array = array_start(head) is not None and not isinstance(found[0] if found else None, dict)
    if not array and any(isinstance(value, dict) for value in found):
        return
    if not found and (not last or last.startswith(b"{")):
        return
    raise UserError(
        f"The input {path} holds no JSON lines: {_likeness(head)}. Expected was an object on each "
        'line, for example {"text": ...}, in UTF-8.'
    )


def _value(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _likeness(head: bytes) -> str:
    other = foreign(head)
    if other:
        return other
    if array_start(head) is not None:
        return "it is a JSON array, which is read as the format json"
    if head.lstrip().startswith(b"{"):
        return f"its objects take several lines or are damaged: {shown(head)}"
    return f"it begins with {shown(head)}"
