"""OpenWebText: JSON lines of texts, kept if they are English and exceed 100 characters.

Both rules come from the reference GLM (THUDM/GLM data_utils/corpora.py, OpenWebText). The reference
only requires that English be the likeliest language, so the threshold is 0 here.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
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
    required_text,
    text_columns,
)
from pipelines.job.command import main
from pipelines.read.names import TEXT_FILES

_METADATA = {shared.name: shared.metadata for shared in fields(Options)}


@dataclass(frozen=True, kw_only=True)
class OpenwebtextOptions(Options):
    """The options of pipelines.openwebtext."""

    languages: tuple[str, ...] = field(default=("en",), metadata=_METADATA["languages"])
    language_threshold: float = field(default=0.0, metadata=_METADATA["language_threshold"])
    min_chars: int = option(101, affects=SEGMENTS, metavar="N", type=count)
    """Minimum number of characters per document."""


def documents(record: Mapping[str, Any], options: OpenwebtextOptions) -> tuple[Document]:
    """Return the document of one page."""
    text = required_text(record, "text")
    origin = {"url": as_text(record.get("url"))}
    return (Document(text, origin, "too-short" if len(text) < options.min_chars else None),)


CORPUS = CorpusSpec(
    name="openwebtext",
    about="Clean, filter, deduplicate, tokenize and shuffle OpenWebText into token shards.",
    pattern=TEXT_FILES,
    options=OpenwebtextOptions,
    input_format=InputFormat(text_fields=("text",), fields=("text", "url")),
    provenance=text_columns("url"),
    documents=documents,
)

if __name__ == "__main__":
    sys.exit(main("pipelines.openwebtext", sys.argv[1:]))
