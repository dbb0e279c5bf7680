"""CC-News as news-please extracts it: JSON lines with title, description and maintext.

A document consists of the title, the description and the text, joined with spaces, and has more
than 100 characters; the description is left out if the text begins with it. These are the rules of
the reference GLM (THUDM/GLM data_utils/corpora.py, CCNews).
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
from pipelines.job.command import main
from pipelines.read.names import JSON_FILES

_ORIGIN = {"url": "url", "date_publish": "date", "source_domain": "domain"}


@dataclass(frozen=True, kw_only=True)
class CcNewsOptions(Options):
    """The options of pipelines.cc_news."""

    min_chars: int = option(101, affects=SEGMENTS, metavar="N", type=count)
    """Minimum number of characters per document."""


def documents(record: Mapping[str, Any], options: CcNewsOptions) -> tuple[Document]:
    """Return the document of one article."""
    body = required_text(record, "maintext")
    title, about = (optional_text(record, name) for name in ("title", "description"))
    heads = [title, about if not body.startswith(about) else ""]
    text = "".join(f"{head} " for head in heads if head) + body
    origin = {column: as_text(record.get(name)) for name, column in _ORIGIN.items()}
    return (Document(text, origin, "too-short" if len(text) < options.min_chars else None),)


CORPUS = CorpusSpec(
    name="cc_news",
    about="Clean, filter, deduplicate, tokenize and shuffle CC-News into token shards.",
    pattern=JSON_FILES,
    options=CcNewsOptions,
    input_format=InputFormat(text_fields=("maintext",)),
    provenance=text_columns(*_ORIGIN.values()),
    documents=documents,
)

if __name__ == "__main__":
    sys.exit(main("pipelines.cc_news", sys.argv[1:]))
