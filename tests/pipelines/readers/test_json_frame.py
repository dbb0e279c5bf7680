import gzip

import pytest

from pipelines.readers.json_frame import HEAD_BYTES, TAIL, array_start, check_array
from shards.errors import UserError


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b" \n[ ]",
        b'[{"id":1}]',
        b"[{}]",
        b"\xef\xbb\xbf[\r\n  {",
        b'{"RECORDS":[]}',
        b'{ "RECORDS" : [ {"id":1',
        b'{"a": "\\"RECORDS\\": [", "b": -1.5e3, "c": null, "RECORDS": [{"id":1}]}',
        b'[null, 3, {"id": 1}]',
        b'[rubbish, {"id": 1}]',
        b'[{"content": "a\xff"}]',
    ],
)
def test_arrays_of_objects_pass(raw: bytes) -> None:
    check_array(raw, "part-1.json")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (gzip.compress(b"[]", mtime=0), r"it is a gzip archive, so unpack it first"),
        (b"Rar!\x1a\x07\x01\x00", r"it is a rar archive"),
        (b"\x28\xb5\x2f\xfd\x00", r"it is a zstd archive"),
        ("[]".encode("utf-16"), r"it is UTF-16, so convert it to UTF-8"),
        (b'{"id": 1}\n{"id": 2}\n', r"it has one object per line \(JSON lines\)"),
        (b'{"id": 1}', r"an object without the key \"RECORDS\" near its start: '\{\"id\": 1\}'"),
        (b'{"records": [{"id": 1}]}', r"without the key \"RECORDS\""),
        (b'{"meta": {"n": 1}, "RECORDS": [{"id": 1}]}', r"without the key \"RECORDS\""),
        (b"plain text", r"it begins with 'plain text'\. Expected was \[\{\.\.\.\}, \.\.\.\] or"),
        (b" " * 70_000 + b"[]", r"it begins with ' +'"),
        (b"[1,2,3]", r"but not of objects: its first element begins with '1,2,3\]'"),
        (b'["a","b"]', r"its first element begins with '\"a\",\"b\"\]'"),
        (b"[[1]]", r"its first element begins with '\[1\]\]'"),
    ],
)
def test_other_files_are_refused_by_name(raw: bytes, message: str) -> None:
    with pytest.raises(UserError, match=rf"The input .*part-1\.json .*{message}"):
        check_array(raw[:HEAD_BYTES], "data/part-1.json")


@pytest.mark.parametrize(
    ("head", "start"),
    [(b"[{", 1), (b"x[", None), (b"\xef\xbb\xbf [", 5), (b'{"a":1,"RECORDS":[{', 18)],
)
def test_array_start(head: bytes, start: int | None) -> None:
    assert array_start(head) == start


@pytest.mark.parametrize(
    ("tail", "length"),
    [
        (b"]", 1),
        (b"]\n", 2),
        (b"]}", 2),
        (b'] , "total": 3, "name": "x]}" }', 31),
        (b'],{"id":1}]', 1),
        (b'], "list": []}', 1),
    ],
)
def test_tail(tail: bytes, length: int) -> None:
    match = TAIL.match(tail)
    assert match
    assert match.end() == length
