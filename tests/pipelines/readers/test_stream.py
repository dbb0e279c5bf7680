import bz2
import gzip
import io
import sys
from pathlib import Path

import google_crc32c
import pytest
import zstandard

from pipelines.inputs.files import match_inputs
from pipelines.inputs.split import Split, split_file
from pipelines.readers.stream import PlainStream, open_stream
from shards.errors import UserError

CONTENT = b"0123456789" * 100


def splits(path: Path, raw: bytes, split_bytes: int) -> list[Split]:
    path.write_bytes(raw)
    (file,) = match_inputs([str(path)], pattern="*", default_name="s")
    return split_file(file, split_bytes)


def test_a_split_is_read_from_an_offset_to_the_end_of_the_file(tmp_path: Path) -> None:
    split = splits(tmp_path / "a", CONTENT, 300)[1]
    with open_stream(split, offset=290) as stream:
        assert (stream.offset, stream.end, stream.size) == (290, 600, 1000)
        assert stream.read(20) == CONTENT[290:310]
        assert (stream.offset, stream.done) == (310, 10)
        assert stream.read(10_000) == CONTENT[310:]
        assert stream.read(1) == b""
        assert stream.done == 300
        assert stream.crc32c == google_crc32c.value(CONTENT[300:600])
        assert stream.failure is None


PACKED = {"a.gz": gzip.compress, "a.zst": zstandard.compress, "a.bz2": bz2.compress}


@pytest.mark.parametrize("name", PACKED)
def test_a_compressed_file_is_read_as_its_content(name: str, tmp_path: Path) -> None:
    raw = PACKED[name](CONTENT)
    (split,) = splits(tmp_path / name, raw, len(raw))
    with open_stream(split) as stream:
        assert stream.end == stream.size == sys.maxsize
        assert stream.read(7) + stream.read(10_000) == CONTENT
        assert (stream.read(1), stream.size, stream.failure) == (b"", 1000, None)
        assert stream.done == len(raw)
        assert stream.crc32c == google_crc32c.value(raw)


def test_a_broken_archive_says_why_it_ended(tmp_path: Path) -> None:
    raw = gzip.compress(CONTENT, mtime=0)[:-8]
    (split,) = splits(tmp_path / "a.gz", raw, len(raw))
    with open_stream(split) as stream:
        assert stream.read(10_000) == CONTENT
        assert (stream.size, stream.failure) == (1000, "truncated")


def test_a_file_that_got_shorter_is_refused(tmp_path: Path) -> None:
    (split,) = splits(tmp_path / "a", CONTENT, 1000)
    stream = PlainStream(io.BytesIO(CONTENT[:700]), split, offset=0)
    assert stream.read(600) == CONTENT[:600]
    with pytest.raises(UserError, match=r"/a ended at byte 700 of 1000: it changed while it was r"):
        stream.read(200)
