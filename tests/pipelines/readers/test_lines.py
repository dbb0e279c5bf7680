import json
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.inputs.split import seamless
from pipelines.readers.jsonl import object_line
from pipelines.readers.lines import LineReader, check_lines, text_line
from pipelines.readers.reading import splits
from pipelines.readers.record import RAW_BYTES, Damage, Record
from shards.errors import UserError
from tests.pipelines.readers.readings import (
    damages,
    read_file,
    read_in_splits,
    reading,
    values,
    written,
)

REAL = Path(__file__).parents[4] / "shared" / "data" / "corpora" / "pile" / "01.jsonl"


def test_each_line_is_a_record(tmp_path: Path) -> None:
    raw = '\n{"text":"a"}\r\n  {"text": "好\u2028\x85"} \n \t\r\n{"n":[1,{"text":2}]}'.encode()
    items = read_file(written(tmp_path / "a.jsonl", raw), reading())
    assert values(items) == [{"text": "a"}, {"text": "好\u2028\x85"}, {"n": [1, {"text": 2}]}]
    assert [raw[item.offset : item.offset + item.length] for item in items] == [
        item.raw for item in items
    ]
    assert [item.offset for item in items] == [1, 15, 43]


def test_texts_are_lines_with_the_line_feeds_they_stand_for(tmp_path: Path) -> None:
    raw = " one<n>two\u2028 \r\n\n\u3000\r\n<n>\nthree".encode()
    file = written(tmp_path / "a.txt", raw)
    plain = read_file(file, reading())
    assert [value["text"] for value in values(plain)] == [" one<n>two\u2028 ", "<n>", "three"]
    replaced = read_file(file, reading(newline="<n>"))
    assert [value["text"] for value in values(replaced)] == [" one\ntwo\u2028 ", "\n", "three"]
    assert [item[:2] for item in plain] == [item[:2] for item in replaced] == [
        (0, 15), (22, 3), (26, 5),
    ]  # fmt: skip


def test_the_mark_of_a_file_that_was_joined_is_no_text(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    file = written(
        tmp_path / "a.txt", mark + b"a\n" + mark + b"b\n" + mark + b"\n" + mark * 2 + b" c"
    )
    items = read_file(file, reading())
    assert values(items) == [{"text": "a"}, {"text": "b"}, {"text": " c"}]
    assert [item[:2] for item in items] == [(3, 1), (5, 4), (14, 8)]
    assert read_in_splits(file, reading(), split_bytes=1) == items


DAMAGED = [
    (b'{"text":"a\xff"}', "bad-utf8"),
    (b'{"text":"\xe4\xb8"}\r', "bad-utf8"),
    (b'{"text":01}', "bad-json"),
    (b'{"text":"cut', "bad-json"),
    (b'{"text":"a"}{"text":"b"}', "bad-json"),
    (b'{"text":"\\ud800", "n": 01}', "bad-json"),
    (b'{"text":nan}', "bad-json"),
    (b'{"a":' * 1200 + b"1" + b"}" * 1199, "bad-json"),
    (b"\0", "bad-json"),
    (b"[1, {}]", "not-an-object"),
    (b" 17 ", "not-an-object"),
    (b'"a"', "not-an-object"),
    (b"null", "not-an-object"),
    (b'{"text":"' + b"x" * 9000 + b'"}', "too-long"),
    (b"\xff" * 9000, "too-long"),
]


@pytest.mark.parametrize(("line", "reason"), DAMAGED)
@pytest.mark.parametrize("place", ["first", "middle", "last", "last without its line feed"])
def test_damage_costs_its_line(line: bytes, reason: str, place: str, tmp_path: Path) -> None:
    good = b'{"text":"good"}\n'
    before = b"" if place == "first" else good
    after = b"" if place.startswith("last") else good
    end = b"" if place.endswith("feed") else b"\n"
    file = written(tmp_path / "a.jsonl", before + line + end + after)
    how = reading("jsonl", max_record_bytes=8000)
    items = read_file(file, how)
    assert damages(items) == [(len(before), len(line), reason)]
    assert len(values(items)) == bool(before) + bool(after)
    (damage,) = (item for item in items if isinstance(item, Damage))
    assert damage.raw == line
    for split_bytes in (1, 7) if file.bytes < 100 else (300, 1000):
        assert read_in_splits(file, how, split_bytes=split_bytes) == items


def test_a_text_that_is_not_utf8_is_damage(tmp_path: Path) -> None:
    items = read_file(written(tmp_path / "a.txt", b"good\nb\xffd\nlong line\nok"), reading())
    assert damages(items) == [(5, 3, "bad-utf8")]
    assert len(values(items)) == 3
    short = reading(max_record_bytes=8)
    assert damages(read_file(written(tmp_path / "a.txt", b"long line\nok"), short)) == [
        (0, 9, "too-long")
    ]


@pytest.mark.parametrize("rest", [b"", b"\n", b'{"text":"a"}', b'{"text":"a"}\n{"text":"b"}\n'])
@pytest.mark.parametrize("split_bytes", [1, 2, 3, 4, 5, 100])
def test_a_byte_order_mark_is_passed_over(rest: bytes, split_bytes: int, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + rest)
    items = read_in_splits(file, reading(), split_bytes=split_bytes)
    assert values(items) == [json.loads(line) for line in rest.splitlines() if line]
    assert not damages(items)
    assert not items or items[0].offset == 3


def test_the_longest_line_allowed(tmp_path: Path) -> None:
    for mark in (b"", b"\xef\xbb\xbf"):
        file = written(tmp_path / "a.jsonl", mark + b'{"text":"123"}\n{"text":"4"}')
        for split_bytes in range(1, file.bytes + 1):
            at = {"split_bytes": split_bytes}
            assert len(values(read_in_splits(file, reading(max_record_bytes=14), **at))) == 2
            assert len(values(read_in_splits(file, reading(max_record_bytes=13), **at))) == 1


def test_a_long_line_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(b'{"text":"a"}\n{"text":"')
        for _ in range(32):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n{"text":"b"}\n')
    how = reading(max_record_bytes=1 << 20)
    raw = path.read_bytes()
    (split,) = splits(written(path, raw), how, split_bytes=len(raw))
    length = len(raw) - 27
    del raw
    tracemalloc.start()
    try:
        items = list(LineReader(split, object_line, max_record_bytes=1 << 20))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert values(items) == [{"text": "a"}, {"text": "b"}]
    assert damages(items) == [(13, length, "too-long")]
    assert len(items[1].raw) == RAW_BYTES
    assert peak < 6 << 20


PIECES = st.sampled_from(
    [
        b'{"text":"a"}', b'{"text":"\xe5\xa5\xbd","n":[1,2]}', b'{"text":"' + b"l" * 60 + b'"}',
        b"", b"", b" \t", b"\r", b"\xef\xbb\xbf", b"\xff\xfe", b"{", b"17", b"[]", b"\0", b"x" * 90,
    ]
)  # fmt: skip


@given(
    lines=st.lists(st.tuples(PIECES, st.sampled_from([b"\n", b"\r\n"])), min_size=1, max_size=12),
    last=PIECES,
    split_bytes=st.integers(1, 150),
    block_bytes=st.integers(1, 70),
    form=st.sampled_from(["jsonl", "lines"]),
)
@settings(max_examples=100, deadline=None)
def test_splits_and_blocks_read_what_one_split_reads(
    lines: list[tuple[bytes, bytes]],
    last: bytes,
    split_bytes: int,
    block_bytes: int,
    form: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    raw = b"".join(piece + end for piece, end in lines) + last
    file = written(tmp_path_factory.mktemp("lines") / "a.dat", raw)
    how = reading(form, max_record_bytes=64)
    items = read_file(file, how)
    assert read_in_splits(file, how, split_bytes=split_bytes) == items
    parse: Any = object_line if form == "jsonl" else partial(text_line, newline="")
    (split,) = splits(file, how, split_bytes=file.bytes)
    assert list(LineReader(split, parse, max_record_bytes=64, block_bytes=block_bytes)) == items
    expected = _expected(raw, parse)
    assert items == expected


def _expected(raw: bytes, parse: Any) -> list[Record | Damage]:
    """Return what is in a file, by the shortest program that can say so."""
    at, items = 0, []
    for number, line in enumerate(raw.split(b"\n")):
        begin, content = at, line
        if number == 0 and line.startswith(b"\xef\xbb\xbf"):
            begin, content = 3, line[3:]
        if len(content) > 64:
            items.append(Damage(begin, len(content), "too-long", content))
        else:
            items.append(parse(begin, content, None))
        at += len(line) + 1
    return [item for item in items if item is not None]


def test_the_splits_of_one_long_line_hold_nothing(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", b'{"text":"' + b"x" * 100 + b'"}\n{"text":"b"}')
    chain = splits(file, reading(), split_bytes=20)
    readers = [LineReader(split, object_line) for split in chain]
    assert [len(list(reader)) for reader in readers] == [1, 0, 0, 0, 0, 1]
    links = [reader.link for reader in readers if reader.link]
    assert [link.first for link in links] == [0, None, None, None, None, 112]
    assert seamless(links)


def test_a_reader_reports_how_far_it_is(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", b'{"text":"a"}\n' * 10)
    (split,) = splits(file, reading(), split_bytes=file.bytes)
    reader = LineReader(split, object_line, block_bytes=13)
    done = [reader.done for _ in reader]
    assert done == sorted(done)
    assert 13 <= done[0] < 40
    assert reader.done == 130


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            b"PK\x03\x04xx",
            r"a\.txt holds no lines of text: it is a zip archive, so unpack it first",
        ),
        (b"\x1f\x8b\x08", r"gzip archive, so unpack it first or give its name the ending \.gz"),
        ("text".encode("utf-16"), r"it is UTF-16, so convert it"),
        (b"a\0b", r"it is binary: it begins with 'a\\x00b'"),
    ],
)
def test_what_is_no_text_is_refused(head: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_lines(head, "a.txt")


def test_real_lines(tmp_path: Path) -> None:
    if not REAL.exists():
        pytest.skip(f"{REAL} is absent")
    raw = REAL.read_bytes()
    items = read_file(written(tmp_path / "01.jsonl", raw), reading())
    assert values(items) == [json.loads(line) for line in raw.splitlines()]
    assert len(items) > 50
    file = written(tmp_path / "01.jsonl", raw)
    assert read_in_splits(file, reading(), split_bytes=100_000) == items
