"""The columns of batches that steps exchange, with one row per document, and the verdicts."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

KEPT, DROPPED, QUARANTINED = "kept", "dropped", "quarantined"
"""The verdicts on a record: it is in the dataset, left out for a reason, or unreadable."""

DUPLICATE = "duplicate"
"""The reason for dropping a document whose text occurs elsewhere in the run."""

NEAR_DUPLICATE = "near-duplicate"
"""The reason for dropping a document that is similar to a different document of the run."""

QUARANTINE_REASONS = frozenset(
    {
        # from the reader
        "bad-utf8", "bad-json", "not-an-object", "truncated", "too-long",
        "unterminated-array", "trailing-bytes", "bad-archive", "bad-row-group",
        # from a record that could be read
        "missing-field", "wrong-type", "nul", "tokenizer-failed",
    }
)  # fmt: skip
"""The reasons that quarantine a record; any other reason drops it."""

RAW_HEAD = pa.field("raw", pa.large_binary())
"""The column of quarantined rows with the first 64 KiB of the record, if they are available."""

CLEAN = pa.field("clean_level", pa.string())
"""The column with each text's level of cleaning, until the texts are cleaned; it is missing if all
levels are the default."""

CATEGORICAL = pa.dictionary(pa.int32(), pa.large_string())
"""The type of a string column with few distinct values."""

PATH = pa.field("path", CATEGORICAL)
"""The column with the path of each row's file, relative to its input; a batch may have rows of
several files of one source."""

SOURCE = pa.field("source", CATEGORICAL)
"""The column with the name of each row's input, in batches of a custom pipeline."""

REASON = pa.field("reason", CATEGORICAL)
"""The column with the reasons of dropped and quarantined rows, in batches of a custom pipeline."""

METRIC = b"corpusmill.metric"
"""The metadata key that marks fields of metrics, which are columns of the audit table only."""

ROWS = "rows"
"""The path, and the default source, of documents that do not come from a file."""

DOCUMENT_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("ordinal", pa.int32()),
        ("order", pa.uint64()),
        ("holdout", pa.uint64()),
        ("bytes", pa.int64()),
        ("group", pa.large_string()),
        ("prompt", pa.large_string()),
        ("text", pa.large_string()),
    ]
)
"""The columns that the first step gets; the corpus's columns of provenance and PATH follow.

`position` and `length` are in bytes of the uncompressed file; in tables they are the row number
and 1. `bytes` is the number of UTF-8 bytes of prompt and text as read. `group` is the part of the
corpus that the account lists separately ("" if there is none).
"""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The result of a step for a batch: the rows with the columns that the step added, and reasons.

    `reasons` is a string array with one value per row, null if the document is kept.
    """

    batch: pa.RecordBatch
    reasons: pa.Array


def constant_column(value: str, rows: int) -> pa.Array:
    """Return a column of type CATEGORICAL with the same value in all rows."""
    indices = pa.array(np.zeros(rows, np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.large_string()))


def whole_texts(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """Return prompt and text of each row as one string."""
    if not pc.any(pc.not_equal(rows["prompt"], "")).as_py():
        return rows["text"]
    nothing = pa.scalar("", pa.large_string())
    return pc.binary_join_element_wise(rows["prompt"], rows["text"], nothing)


def utf8(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the buffers of a column of large_string without nulls.

    Returns:
        The bytes of all texts (uint8[m]), and the places in them where each text begins and the
        last one ends (int64[n + 1]).
    """
    _, places, content = texts.buffers()
    offsets = np.frombuffer(places, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(content or b"", np.uint8), offsets
