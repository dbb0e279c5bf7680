"""A custom corpus: the texts of web pages in WARC files, as crawlers write them.

    pip install trafilatura warcio
    python -m web_pages --input crawl --tokenizer tiktoken:gpt2

A response of text/html is a record; all others (requests, pictures, robots.txt) are passed over.
"""

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import trafilatura
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from pipelines.corpus import BrokenRecord, CorpusSpec, Document, InputFormat, Options, text_columns
from pipelines.job.command import main

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it warns of every empty page

_CHARSET = re.compile(r"charset=[\"']?([\w-]+)", re.IGNORECASE)


def pages(stream: BinaryIO) -> Iterator[Mapping[str, Any] | BrokenRecord]:
    """Yield the pages of a WARC file, which is unpacked already."""
    try:
        for record in ArchiveIterator(stream):
            kind = record.http_headers and record.http_headers.get_header("Content-Type")
            if record.rec_type == "response" and kind and kind.startswith("text/html"):
                html = record.content_stream().read()
                about = record.rec_headers.get_header
                yield {
                    "url": about("WARC-Target-URI"),
                    "date": about("WARC-Date"),
                    "kind": kind,
                    "html": html,
                }
    except ArchiveLoadFailed as error:  # the rest cannot be found: one reject for all of it
        yield BrokenRecord("bad-archive", str(error).encode())


def documents(record: Mapping[str, Any], _: Options) -> tuple[Document]:
    """Return the text of a page, without menus, footers and advertisements."""
    html = decoded(record["html"], record["kind"])
    text = trafilatura.extract(html, include_comments=False, favor_precision=True) or ""
    origin = {"url": record["url"], "date": record["date"]}
    return (Document(text, origin, None if text else "no-text"),)


def decoded(html: bytes, kind: str) -> str | bytes:
    """Return a page in the encoding that its header names; bytes, if that is none or wrong."""
    named = _CHARSET.search(kind)
    # Pages that claim GB2312 or GBK often have characters that only GB18030 has.
    charset = re.sub(r"^(gb2312|gbk)$", "gb18030", named[1].lower()) if named else "ascii"
    try:
        return html.decode(charset)
    except (LookupError, UnicodeDecodeError):
        return html  # trafilatura looks for a meta element, or guesses


CORPUS = CorpusSpec(
    name="web_pages",
    about="Make token shards of the web pages in WARC files.",
    pattern=("*.warc", "*.warc.gz", "*.warc.zst"),
    options=Options,
    input_format=InputFormat(read=pages),
    provenance=text_columns("url", "date"),
    documents=documents,
)

if __name__ == "__main__":
    sys.exit(main("web_pages", sys.argv[1:]))
