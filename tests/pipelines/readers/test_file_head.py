import bz2
import gzip
from pathlib import Path

import pytest
import zstandard

from pipelines.readers.file_head import (
    HEAD_BYTES,
    excerpt,
    foreign_format,
    other_encoding,
    read_head,
)
from shards.errors import UserError

LONG = b"0123456789" * 10_000


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.json", LONG),
        ("a.json.gz", gzip.compress(LONG, mtime=0)),
        ("a.json.zst", zstandard.compress(LONG)),
        ("a.json.bz2", bz2.compress(LONG)),
    ],
)
def test_the_head_of_a_file_is_unpacked(name: str, raw: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    assert read_head(str(tmp_path / name)) == LONG[:HEAD_BYTES]


def test_the_head_of_a_short_or_broken_file_is_what_there_is(tmp_path: Path) -> None:
    for name, raw, head in (
        ("a.json", b"[]", b"[]"),
        ("a.json.gz", gzip.compress(b"[]", mtime=0), b"[]"),
        ("b.json.gz", gzip.compress(b"[]", mtime=0)[:4], b""),
    ):
        (tmp_path / name).write_bytes(raw)
        assert read_head(str(tmp_path / name)) == head


def test_an_archive_by_name_only_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(b"[{}]")
    with pytest.raises(UserError, match=r"a\.json\.gz is not a gzip archive, .*begins with b'\[\{"):
        read_head(str(tmp_path / "a.json.gz"))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            gzip.compress(b"", mtime=0),
            "it is a gzip archive, so unpack it first or give its name the ending .gz",
        ),
        (b"PK\x03\x04", "it is a zip archive, so unpack it first"),
        (b"PAR1\0", "it is a Parquet file, so give its name the ending .parquet"),
        ("text".encode("utf-16"), "it is UTF-16, so convert it to UTF-8 first"),
        (b"text", None),
        (b"", None),
    ],
)
def test_foreign_formats_are_named(head: bytes, expected: str | None) -> None:
    assert foreign_format(head) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("今天天气很好，我们去公园散步。".encode("gbk"), "GB18030 (GBK)"),
        ("{'text': '今天天气很好'}".encode("gb18030")[:-3], "GB18030 (GBK)"),
        ("今天天气很好，我们去公园散步。".encode(), None),
        ("今天天气很好，我们".encode()[:-1] + b"\xff" + "去公园散步。".encode(), None),
        ("déjà vu, à côté".encode("latin-1"), None),
        (b"plain", None),
        (b"\xff\xff\xff", None),
    ],
)
def test_an_encoding_of_chinese_is_named_where_it_is_likely(
    head: bytes, expected: str | None
) -> None:
    assert other_encoding(head) == expected


def test_an_excerpt_is_short_and_printable() -> None:
    assert excerpt(b"a\xffb\n" * 50) == repr("a\ufffdb\n" * 10)
