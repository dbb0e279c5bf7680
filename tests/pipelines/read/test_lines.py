from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.read.formats import open_reader, splits
from pipelines.read.json_object import object_record
from pipelines.read.lines import JsonLinesReader, text_record
from pipelines.read.record import Damage, Record
from tests.pipelines.read.readings import (
    input_format,
    read_file,
    read_in_splits,
    written,
)

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
    how = input_format(form, max_record_bytes=64)
    items = read_file(file, how)
    assert read_in_splits(file, how, split_bytes=split_bytes) == items
    (split,) = splits(file, how, split_bytes=file.bytes)
    reader = open_reader(split, how)
    assert isinstance(reader, JsonLinesReader)
    reader.block_bytes = block_bytes
    assert list(reader) == items
    expected = _expected(raw, object_record if form == "jsonl" else text_record)
    assert items == expected


def _expected(raw: bytes, parse: Any) -> list[Record | Damage]:
    """Return the items of a file, found by a simple reader."""
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
