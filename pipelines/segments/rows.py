"""What travels between the stages, and the three hashes that decide where a document goes.

A *record* is what a reader finds in an input file; a *document* is a text made of it (one record
may make several, told apart by their ordinal). A record's identity is (input name, path relative to
that input, position): it depends on neither machine nor order of work. From it come, keyed by the
seed:

    order     of the document: its shard and its place there
    sample    of the record: `--sample F` keeps hash < F * 2**64, so samples nest
    holdout   of the record: validation takes the smallest, siblings stay together
"""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

KEPT, DROPPED, QUARANTINED = "kept", "dropped", "quarantined"
"""The verdicts on a record: in the dataset, left out by a rule, unreadable and in rejects/."""

DUPLICATE = "duplicate"
"""The reason given to a document whose text stands elsewhere in the run."""

NEAR_DUPLICATE = "near-duplicate"
"""The reason given to a document that is similar to another of the run."""

REJECTS = frozenset(
    {
        # found by the reader
        "bad-utf8", "bad-json", "not-an-object", "truncated", "too-long",
        "unterminated-array", "trailing-bytes", "bad-archive", "bad-row-group",
        # found in a record that could be read
        "missing-field", "wrong-type", "nul", "tokenizer-failed",
        # found by the deaths of those who judged it
        "poison",
    }
)  # fmt: skip
"""The reasons that quarantine a record; any other reason drops it."""

NAME = pa.dictionary(pa.int32(), pa.large_string())
"""A string column of few distinct values."""

READ = pa.schema(
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
"""What a reader hands to the first stage; a corpus adds columns of provenance behind these.

position and length are in bytes of the uncompressed file (or row number and 1); bytes counts the
UTF-8 bytes of prompt and text as read; group is the part of the corpus that the account tells apart
("" where it has none).
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a stage says of a batch: the same rows with its columns added, and a reason per row.

    `reasons` is a string array of the batch's length, null where the document stays.
    """

    batch: pa.RecordBatch
    reasons: pa.Array


class Stage(Protocol):
    """A function from a batch to the verdict on it, with a name."""

    __name__: str

    def __call__(self, batch: pa.RecordBatch, /) -> Verdict:
        """Return the verdict."""
        ...


def whole_texts(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """Return prompt and text of each row as one string."""
    if not pc.any(pc.not_equal(rows["prompt"], "")).as_py():
        return rows["text"]
    nothing = pa.scalar("", pa.large_string())
    return pc.binary_join_element_wise(rows["prompt"], rows["text"], nothing)
