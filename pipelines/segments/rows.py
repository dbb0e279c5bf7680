"""What travels between the stages, and the three hashes that decide where a document goes.

A *record* is what a reader finds in an input file; a *document* is a text made of it (one record
may make several, told apart by their ordinal). A record's identity is (input name, path relative to
that input, position): it depends on neither machine nor order of work. From it come, keyed by the
seed:

    order     of the document: its shard and its place there
    sample    of the record: `--sample F` keeps hash < F * 2**64, so samples nest
    holdout   of the record: validation takes the smallest, siblings stay together
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
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
class Document:
    """A text found in a record, with its provenance, or with the reason to leave it out."""

    text: str
    provenance: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    prompt: str = ""
    """Stands before the text and carries no loss."""


class Rejected(Exception):
    """Raised by a corpus for a record that is not what it should be; says the reason."""


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


def order_hashes(
    source: str, relative: str, *, positions: np.ndarray, ordinals: np.ndarray, seed: int
) -> np.ndarray:
    """Return the order hash (uint64) of each document of one file.

    Args:
        source: Name of the input.
        relative: Path of the file relative to the input, with forward slashes.
        positions: int64[n], byte offsets or row numbers of the records.
        ordinals: int[n], number of the document within its record.
        seed: Seed of the run.
    """
    records = _hashes("order", source, relative, positions, seed)
    steps = ordinals.astype(np.uint64) * np.uint64(_GOLDEN)
    return _mixed(records + steps)


def sample_hashes(source: str, relative: str, positions: np.ndarray, *, seed: int) -> np.ndarray:
    """Return the sample hash (uint64) of each record of one file; arguments as in order_hashes."""
    return _hashes("sample", source, relative, positions, seed)


def holdout_hashes(source: str, relative: str, positions: np.ndarray, *, seed: int) -> np.ndarray:
    """Return the holdout hash (uint64) of each record of one file; arguments as in order_hashes."""
    return _hashes("holdout", source, relative, positions, seed)


def whole_texts(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """Return prompt and text of each row as one string."""
    if not pc.any(pc.not_equal(rows["prompt"], "")).as_py():
        return rows["text"]
    nothing = pa.scalar("", pa.large_string())
    return pc.binary_join_element_wise(rows["prompt"], rows["text"], nothing)


def below(fraction: float) -> int:
    """Return the hash value below which a fraction of all records lies, at most 2**64."""
    return min(int(fraction * 2**64), 2**64)


_GOLDEN = 0x9E3779B97F4A7C15


def _hashes(
    domain: str, source: str, relative: str, positions: np.ndarray, seed: int
) -> np.ndarray:
    text = "\0".join((domain, str(seed), source, relative))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return _mixed(positions.astype(np.uint64) ^ np.uint64(int.from_bytes(digest, "little")))


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) of each value, twice.

    It is a bijection, so records of one file never share a hash.
    """
    for _ in range(2):
        values = values + np.uint64(_GOLDEN)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        values = values ^ (values >> np.uint64(31))
    return values
