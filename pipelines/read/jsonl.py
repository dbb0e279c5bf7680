"""JSON lines: an object on each line."""

import re

from pipelines.read.file_head import BOM, excerpt, foreign_text
from pipelines.read.json_scan import array_start, diagnosis, spans_lines
from pipelines.read.record import WHOLE_BYTES, Damage, Reason, Record
from pipelines.read.salvage import parse_object
from shards.errors import UserError

_MARKS = re.compile(rb"(?:%s)++" % BOM)
"""Where files were joined, a line may begin with the byte order mark of the second."""


def object_line(offset: int, line: bytes, broken: Reason | None) -> Record | Damage | None:
    """Return the record on a line, damage if there is none, None if the line is blank.

    Args:
        offset: Where it begins.
        line: Its bytes, without the line feed.
        broken: Why the line may lack its end, None if it is whole. A complete object is a record
            all the same.
    """
    value = parse_object(line)
    if value is not None:
        return Record(offset, len(line), value, line)
    if marks := _MARKS.match(line):
        return object_line(offset + marks.end(), line[marks.end() :], broken)
    if not line.strip():
        return None
    return Damage(offset, len(line), broken or diagnosis(line.strip()), line[:WHOLE_BYTES])


def check_objects(head: bytes, path: str) -> None:
    """Check that a file begins with objects, one on a line; damaged lines may stand between them.

    Args:
        head: Its first bytes, unpacked; the last line may be cut off.
        path: Where it is.

    Raises:
        UserError: It does not; the message says what it is instead.
    """
    lines = [line.strip() for line in head.removeprefix(BOM).split(b"\n")]
    last = lines.pop()
    is_object = [_is_object(line) for line in lines if line]
    array = array_start(head) is not None and not (is_object and is_object[0])
    if (any(is_object) or _is_object(last)) and not array:
        return
    if not is_object and (not last or last.startswith(b"{")):
        return
    raise UserError(
        f"The input {path} holds no JSON lines: {_description(head)}. Expected was an object on "
        'each line, for example {"text": ...}, in UTF-8.'
    )


def _is_object(line: bytes) -> bool:
    return isinstance(object_line(0, line, None), Record)


def _description(head: bytes) -> str:
    if foreign := foreign_text(head):
        return foreign
    if array_start(head) is not None:
        return "it is a JSON array, which is read as the format json"
    if head.lstrip().startswith(b"{"):
        if spans_lines(head):
            return (
                "its objects take several lines: give its name the ending .json, or each a line of "
                f"its own, as in: jq -c . FILE > NEW. It begins with {excerpt(head)}"
            )
        return f"its objects are damaged: {excerpt(head)}"
    return f"it begins with {excerpt(head)}"
