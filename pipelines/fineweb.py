"""FineWeb, FineWeb-Edu and FineWeb-2: Parquet files of web pages, from the Hugging Face hub.

Every column is kept as provenance. Three columns are renamed because our own columns have the same
names: `language`, `score` and `int_score` become `web_language`, `edu_score` and `edu_int_score`.
Columns that COLUMNS lacks, and values of numeric columns that are not numbers, go into `other` as
JSON.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

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
)
from pipelines.job.command import main

COLUMNS: Mapping[str, tuple[str, pa.DataType]] = {
    **{
        name: (name, pa.large_string())
        for name in ("id", "dump", "url", "date", "file_path", "language_script", "top_langs")
    },
    "language": ("web_language", pa.large_string()),
    "language_score": ("language_score", pa.float64()),
    "token_count": ("token_count", pa.int64()),
    "score": ("edu_score", pa.float64()),
    "int_score": ("edu_int_score", pa.int64()),
    "minhash_cluster_size": ("minhash_cluster_size", pa.int64()),
}
"""The name and type with which each column of the files is kept."""
PROVENANCE = {**dict(COLUMNS.values()), "other": pa.large_string()}
_TEXTS = {field: name for field, (name, kind) in COLUMNS.items() if kind == pa.large_string()}
_INTEGERS = {pa.float64(): range(-(2**53), 2**53 + 1), pa.int64(): range(-(2**63), 2**63)}
_PYTHON_TYPES = {pa.float64(): (float, int), pa.int64(): (int,)}


@dataclass(frozen=True, kw_only=True)
class FinewebOptions(Options):
    """The options of pipelines.fineweb."""

    min_chars: int = option(1, affects=SEGMENTS, metavar="N", type=count)
    """Minimum number of characters per document."""


def documents(record: Mapping[str, Any], options: FinewebOptions) -> tuple[Document]:
    """Return the document of one page."""
    text = required_text(record, "text")
    origin, other = {}, {}
    for field, value in record.items():
        if field in _TEXTS:
            origin[_TEXTS[field]] = as_text(value)
        elif field in COLUMNS and _fits(value, COLUMNS[field][1]):
            origin[COLUMNS[field][0]] = value
        elif value is not None and field != "text":
            other[field] = value
    reason = "too-short" if len(text) < options.min_chars else None
    return (Document(text, {**origin, "other": as_text(other or None)}, reason),)


def _fits(value: Any, data_type: pa.DataType) -> bool:
    if type(value) not in _PYTHON_TYPES[data_type]:
        return False
    return type(value) is not int or value in _INTEGERS[data_type]


CORPUS = CorpusSpec(
    name="fineweb",
    about="Clean, filter, deduplicate, tokenize and shuffle FineWeb into token shards.",
    pattern="*.parquet",
    options=FinewebOptions,
    input_format=InputFormat(format="parquet", text_fields=("text",)),
    provenance=PROVENANCE,
    documents=documents,
    group="dump",
)

if __name__ == "__main__":
    sys.exit(main("pipelines.fineweb", sys.argv[1:]))
