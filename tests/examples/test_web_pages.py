"""Tests docs/examples/web_pages.py, the corpus of docs/own.md for WARC files."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.code import code_hash
from pipelines.job.build import build
from shards.reader import Dataset
from tests.pipelines.runs import page, small, write_wudao

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

CHINESE = (
    "河上的石桥是明代修的，桥面的石板被车轮磨出了两道深深的印子。",
    "每年春天，村里的人都要来修一次桥，老人们说它比村里所有的房子都老。",
)
ENGLISH = (
    "The stone bridge was built long ago, and the carts have worn two deep tracks into it.",
    "Every spring the people of the village come to mend it before the river rises.",
)


def html(language: str, paragraphs: tuple[str, ...], charset: str = "") -> str:
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    meta = f'<meta charset="{charset}">' if charset else ""
    return (
        f'<html lang="{language}"><head>{meta}<title>Bridge</title></head><body>'
        '<nav><ul><li><a href="/">Home</a></li><li><a href="/login">Log in</a></li></ul></nav>'
        f"<main><article><h1>1</h1>{body}</article></main>"
        "<footer><p>All rights reserved. Cookies.</p></footer></body></html>"
    )


def response(path: str, body: bytes, kind: str = "text/html") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return record("response", path, head.encode() + body)


def record(kind: str, path: str, block: bytes) -> bytes:
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: https://river.example/{path}\r\n"
        "WARC-Date: 2026-11-01T08:00:00Z\r\nWARC-Record-ID: <urn:uuid:0-0-0-0>\r\n"
        "Content-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def crawl(folder: Path) -> Path:
    """Write WARC files like those that a crawler writes."""
    gbk = html("zh", CHINESE)
    members = [
        record("request", "zh", b"GET /zh HTTP/1.1\r\n\r\n"),
        response("zh", gbk.encode("gb18030"), "text/html; charset=GBK"),
        response("zh-meta", html("zh", CHINESE[::-1], "gb2312").encode("gb18030")),
        response("en", html("en", ENGLISH).encode(), "text/html; charset=utf-8"),
        response("bridge.png", b"\x89PNG", "image/png"),
        response("empty", b"<html><body></body></html>"),
    ]
    folder.mkdir()
    # Crawlers compress every record as a separate gzip member.
    (folder / "a.warc.gz").write_bytes(b"".join(map(gzip.compress, members)))
    whole = response("en-2", html("en", ENGLISH[::-1]).encode(), "text/html; charset=no-such")
    (folder / "b.warc").write_bytes(whole + b"garbage\r\n" * 9)
    return folder


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pytest.importorskip("trafilatura")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    sys.modules.pop("web_pages", None)
    code_hash.cache_clear()


@pytest.mark.usefixtures("examples")
def test_pages_become_documents(tmp_path: Path) -> None:
    pages = crawl(tmp_path / "crawl")
    zh = write_wudao(tmp_path / "zh" / "part-1.json", [page(1)]).parent
    options = small(
        tmp_path / "out", f"zh={zh}", f"web=web_pages:{pages}", max_reject_rate=0.5, dedup="none"
    )
    manifest = build("pipelines.wudao", options)
    tables = [
        pq.read_table(tmp_path / "out" / table.path)
        for table in manifest.generations[0].audit
        if table.source == "web"
    ]
    rows = [row for table in tables for row in table.to_pylist()]
    found = {(row["path"], row["position"]): row["reason"] for row in rows}
    assert found == {
        ("a.warc.gz", 0): None,
        ("a.warc.gz", 1): None,
        ("a.warc.gz", 2): None,
        ("a.warc.gz", 3): "no-text",
        ("b.warc", 0): None,
        ("b.warc", 1): "bad-archive",
    }
    assert sorted(row["language"] for row in rows if not row["reason"]) == ["en", "en", "zh", "zh"]
    dataset = Dataset.open(str(tmp_path / "out"))
    texts = [dataset.vocabulary.decode(tokens) for tokens in dataset.documents()]
    for paragraphs in (CHINESE, ENGLISH):
        for first, second in (paragraphs, paragraphs[::-1]):
            assert any(f"{first}\n{second}" in text for text in texts), texts
    assert not any("Log in" in text or "reserved" in text for text in texts)
