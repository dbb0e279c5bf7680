import pytest

from pipelines.readers.jsonl import check_objects, object_line
from pipelines.readers.record import Damage, Record
from shards.errors import UserError


@pytest.mark.parametrize(
    ("line", "broken", "expected"),
    [
        (b'{"text":"a"}', None, Record(7, 12, {"text": "a"}, b'{"text":"a"}')),
        (b'{"text":"a"}', "truncated", Record(7, 12, {"text": "a"}, b'{"text":"a"}')),
        (b"{}\r", None, Record(7, 3, {}, b"{}\r")),
        (b"", None, None),
        (b" \r", "truncated", None),
        (b'{"te', None, Damage(7, 4, "bad-json", b'{"te')),
        (b'{"te', "truncated", Damage(7, 4, "truncated", b'{"te')),
        (b"\xff", "bad-archive", Damage(7, 1, "bad-archive", b"\xff")),
        (b"[]", None, Damage(7, 2, "not-an-object", b"[]")),
        (b"\xef\xbb\xbf{}", None, Record(10, 2, {}, b"{}")),
        (b"\xef\xbb\xbf" * 9 + b"{", None, Damage(34, 1, "bad-json", b"{")),
        (b"\xef\xbb\xbf", None, None),
    ],
)
def test_object_line(line: bytes, broken: None, expected: Record | Damage | None) -> None:
    assert object_line(7, line, broken) == expected


@pytest.mark.parametrize(
    "head",
    [
        b'{"text":"a"}\n{"text":"b"}\n',
        b'\xef\xbb\xbf\n\n{"text":"a"}\n',
        b'{"text":"cut off by the length of the he',
        b'rubbish\n{"text":"a"}\n{"te',
        b"\n \n",
        b'{"text":"a","odd":1e400}\n',
        b'{"text":"half a pair \\ud800"}\n{"te',
        b'rubbish\n{"text":"without a line feed at the end"}',
    ],
)
def test_objects_pass(head: bytes) -> None:
    check_objects(head, "a.jsonl")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b'[{"text":"a"}]', r"a\.jsonl holds no JSON lines: it is a JSON array, which is read as"),
        (b'[\n  {"text":"a"}\n]\n', r"it is a JSON array"),
        (b'{\n  "text": "a"\n}\n', r"its objects take several lines or are damaged: '\{"),
        (b"plain\ntext\n", r"it begins with 'plain\\ntext\\n'\. Expected was an object on each"),
        (b"1\n2\n3\n", r"it begins with '1"),
        (b"\x28\xb5\x2f\xfd\n", r"zstd archive, so unpack it first or give its name the ending"),
        (b"PAR1\n\n", r"it is a Parquet file, so give its name the ending \.parquet"),
    ],
)
def test_other_files_are_refused(head: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_objects(head, "a.jsonl")
