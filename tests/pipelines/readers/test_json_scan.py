import io

import pytest

from pipelines.inputs.split import Split
from pipelines.readers.json_scan import (
    BLANKS,
    REACH,
    ScanWindow,
    diagnosis,
    element_end,
    parse_object,
)
from pipelines.readers.stream import PlainStream


def window(raw: bytes, *, block_bytes: int = 1 << 20) -> ScanWindow:
    split = Split(
        source="s",
        path="a.json",
        relative="a.json",
        file_bytes=len(raw),
        start=0,
        end=len(raw),
        mtime_ns=0,
    )
    stream = PlainStream(io.BytesIO(raw), split, offset=0)
    return ScanWindow(stream, floor=0, block_bytes=block_bytes)


@pytest.mark.parametrize("block_bytes", [1, 3, 1 << 20])
def test_an_object_is_found_where_it_begins(block_bytes: int) -> None:
    scanned = window(b'[{"a": "},{"} , {"b": [{}]}]', block_bytes=block_bytes)
    assert parse_object(scanned, 1, max_bytes=100) == ({"a": "},{"}, 13)
    assert parse_object(scanned, 16, max_bytes=100) == ({"b": [{}]}, 27)
    assert parse_object(scanned, 16, max_bytes=10)[0] is None


@pytest.mark.parametrize(
    ("raw", "end"),
    [
        (b'{"a": 1}', 8),  # the end of the file follows
        (b'{"a": 1} {"b": 2}', 8),  # a lost comma
        (b'{"a": 1}]', 8),
        (b'{"a": 1} rest', None),
        (b'{"a": 1', None),
        (b'{"a": 01}', None),
        (b"[1]", None),
    ],
)
def test_an_object_counts_by_what_follows_it(raw: bytes, end: int | None) -> None:
    value, reached = parse_object(window(raw), 0, max_bytes=100)
    assert value == ({"a": 1} if end else None)
    assert end is None or reached == end


def test_guesses_give_way_to_counting_brackets() -> None:
    raw = b'{"a": "' + b"},{" * 50 + b'"},'
    assert parse_object(window(raw), 0, max_bytes=1000) == ({"a": "},{" * 50}, len(raw) - 1)


@pytest.mark.parametrize(
    ("raw", "end"),
    [
        (b'{"a": 01 } , 2]', 10),
        (b'"a, ] b", 1', 8),
        (b"rubbish]", 7),
        (b'{"a": [1}, 2]', None),
        (b'"never closed, 1]', None),
        (b"17", None),
    ],
)
def test_the_end_of_a_damaged_element(raw: bytes, end: int | None) -> None:
    scanned = window(raw)
    scanned.load(len(raw))
    assert element_end(scanned, 0, limit=len(raw)) == end


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [(b"\xff", "bad-utf8"), (b"{", "bad-json"), (b"x", "bad-json"), (b"17", "not-an-object")],
)
def test_diagnosis(damaged: bytes, reason: str) -> None:
    assert diagnosis(damaged) == reason


def test_a_window_forgets_what_lies_far_before_its_floor() -> None:
    raw = b" " * 3 * REACH + b"x" * REACH
    scanned = window(raw, block_bytes=100)
    assert scanned.skip(0, BLANKS) == 3 * REACH
    assert scanned.slice(3 * REACH, 3 * REACH + 1) == b"x"
    assert scanned.base > 0
    assert scanned.end - scanned.base < 3 * REACH
    scanned.load(len(raw) + 1)
    assert scanned.end == len(raw)
    assert not scanned.more()
