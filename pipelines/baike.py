"""Baidu Baike: JSON lines with an article's title, abstract and content.

The three fields are joined without a separator, as in the reference GLM (THUDM/GLM
data_utils/corpora.py, baike).
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
    Rejected,
    option,
    optional_text,
    text_columns,
)
from pipelines.job.command import main
from pipelines.read.names import JSON_FILES

_FIELDS = ("title", "abstract", "content")


@dataclass(frozen=True, kw_only=True)
class BaikeOptions(Options):
    """The options of pipelines.baike."""

    separator: str = option("", affects=SEGMENTS, metavar="TEXT")
    """Separator between the parts of an article."""


def documents(record: Mapping[str, Any], options: BaikeOptions) -> tuple[Document]:
    """Return the document of one article."""
    if not any(name in record for name in _FIELDS):
        raise Rejected("missing-field", "content")
    parts = [optional_text(record, name) for name in _FIELDS]
    text = options.separator.join(part for part in parts if part)
    return (Document(text, {"title": parts[0]}),)


CORPUS = CorpusSpec(
    name="baike",
    about="Clean, filter, deduplicate, tokenize and shuffle Baike into token shards.",
    pattern=JSON_FILES,
    options=BaikeOptions,
    input_format=InputFormat(text_fields=("content", "title")),
    provenance=text_columns("title"),
    documents=documents,
)

if __name__ == "__main__":
    sys.exit(main("pipelines.baike", sys.argv[1:]))
