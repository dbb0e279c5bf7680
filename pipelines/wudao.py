"""WuDaoCorpora Text: JSON arrays of pages with title and content.

BAAI ships part-*.json, one array of objects per file; GLM's tools wrap it as {"RECORDS": [...]}.
A document is the title, a space and the content, and has more than 100 characters, as in the
reference GLM (THUDM/GLM data_utils/corpora.py, WuDaoCorpus).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.corpus import (
    SEGMENTS,
    CorpusSpec,
    Document,
    InputFormat,
    Options,
    as_text,
    count,
    option,
    optional_text,
    required_text,
    text_columns,
)
from pipelines.corpus.spec import SAMPLE
from pipelines.job.command import main

PATTERN = "part-*.json"


@dataclass(frozen=True, kw_only=True)
class WudaoOptions(Options):
    """The options of pipelines.wudao."""

    title: str = option(
        "unless-repeated", affects=SEGMENTS, choices=("unless-repeated", "always", "never")
    )
    """When to put the title before the content: always, never, or unless the content begins with
    it."""
    title_separator: str = option(" ", affects=SEGMENTS, metavar="TEXT")
    """Separator between title and content."""
    min_chars: int = option(101, affects=SEGMENTS, metavar="N", type=count)
    """Minimum number of characters per document."""


def documents(record: Mapping[str, Any], options: WudaoOptions) -> tuple[Document]:
    """Return the document of one page."""
    title = optional_text(record, "title").strip()
    content = required_text(record, "content")
    if options.title == "never":
        title = ""
    if not title or (options.title == "unless-repeated" and content.startswith(title)):
        text = content
    else:
        text = title + options.title_separator + content
    origin = {"id": as_text(record.get("uniqueKey")), "category": as_text(record.get("dataType"))}
    return (Document(text, origin, "too-short" if len(text) < options.min_chars else None),)


CORPUS = CorpusSpec(
    name="wudao",
    about="Clean, filter, deduplicate, tokenize and shuffle WuDao into token shards.",
    pattern=PATTERN,
    options=WudaoOptions,
    input_format=InputFormat(format="json", text_fields=("content",)),
    provenance=text_columns("id", "category"),
    documents=documents,
    group="category",
    sample=SAMPLE / PATTERN,
)

if __name__ == "__main__":
    sys.exit(main("pipelines.wudao", sys.argv[1:]))
