"""The bytes of a shard: three files with one stem.

`.bin`, the tokens: little-endian uint16 (vocabulary of at most 65,536) or int32, no header.

    | document 0 … eos | document 1 … eos | …

`.idx`, Megatron's MMIDIDX version 1: Megatron-LM, NeMo and GPT-NeoX read the pair unchanged.

     0   9  17  18  26  34      34+4S           34+12S              42+20S
     +---+---+---+---+---+-------+---------------+------------------+
     |   | 1 | c | S |S+1| int32 | int64         | int64            |
     | ^ |u64|u8 |u64|u64| [S]   | [S]           | [S+1]            |
     +-|-+---+---+---+---+-------+---------------+------------------+
       |       |   |        |       |               document ends, counted in sequences: 0, 1, … S
       |       |   |        |       where each sequence starts in .bin, in bytes
       |       |   |        tokens of each sequence
       |       |   number of sequences, each of which is one document
       |       type of a token: 8 is uint16, 4 is int32
       "MMIDIDX", 0, 0

`.arrow`, one row per document: an Arrow IPC file with one uncompressed record batch, so that every
column can be memory-mapped. The columns of `REQUIRED` come first, followed by those of the
pipeline. (The int64 arrays of `.idx` are never aligned to 8 bytes: search in `offset` instead.)

A shard may be empty: an empty `.bin`, an `.idx` of 42 bytes, an `.arrow` without rows. All
readers here accept that. Megatron's `IndexedDataset` opens it with `mmap=False` only, because an
empty file cannot be memory-mapped: leave empty shards out when you list the prefixes for Megatron.

The layout of `.idx` is that of megatron/core/datasets/indexed_dataset.py (Megatron-LM).
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.errors import DamageError
from shards.storage.files import map_bytes
from shards.storage.remote import AnyPath

Tokens = NDArray[Any]
"""Token ids, uint16 or int32."""

BIN = "bin"
IDX = "idx"
ARROW = "arrow"
SUFFIXES = (BIN, IDX, ARROW)
"""The suffixes of a shard's files, in the order in which the files are written."""

REQUIRED = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),  # first token, counted in tokens
        pa.field("tokens", pa.int32(), nullable=False),  # tokens, including the final eos
        pa.field("prompt_tokens", pa.int32(), nullable=False),  # leading tokens that have no loss
        pa.field("order", pa.uint64(), nullable=False),  # the hash that sorts the documents
    ]
)
"""The columns that every `.arrow` has."""

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_HEADER = struct.Struct("<9sQBQQ")
_CODES: dict[np.dtype[Any], int] = {np.dtype("<u2"): 8, np.dtype("<i4"): 4}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
_UINT16_VOCABULARY = 65_536


def token_dtype(vocabulary_size: int) -> np.dtype[Any]:
    """Return the type of a token: `<u2` if every id fits, else `<i4`."""
    return np.dtype("<u2" if vocabulary_size <= _UINT16_VOCABULARY else "<i4")


def shard_file(stem: AnyPath, suffix: str) -> AnyPath:
    """Return the path of one of a shard's files; a stem may contain dots."""
    return stem.with_name(f"{stem.name}.{suffix}")


def index_bytes(lengths: NDArray[np.int32], dtype: np.dtype[Any]) -> bytes:
    """Return the `.idx` of documents with lengths in tokens: 42 bytes, plus 20 per document."""
    num_documents = len(lengths)
    header = _HEADER.pack(_MAGIC, _VERSION, _CODES[dtype], num_documents, num_documents + 1)
    return b"".join([header, *(array.tobytes() for array in _arrays(lengths, dtype))])


def _arrays(lengths: NDArray[np.int32], dtype: np.dtype[Any]) -> Sequence[NDArray[Any]]:
    """Return the arrays that follow the header: lengths, pointers, document ends."""
    ends = np.cumsum(lengths, dtype="<i8") * dtype.itemsize
    pointers = np.concatenate([np.zeros(1, "<i8"), ends])[:-1]
    return lengths.astype("<i4"), pointers, np.arange(len(lengths) + 1, dtype="<i8")


def read_index(path: AnyPath) -> tuple[np.dtype[Any], NDArray[np.int32]]:
    """Return the token type and the documents' lengths in tokens, int32, from an `.idx`.

    Raises:
        DamageError: the file is not what `index_bytes` writes.
    """
    content = map_bytes(path)
    if len(content) < _HEADER.size:
        raise _damage(path, f"has {len(content)} bytes; its header alone takes {_HEADER.size}")
    magic, version, code, num_documents, num_ends = _HEADER.unpack_from(content.data)
    if (magic, version) != (_MAGIC, _VERSION):
        raise _damage(path, f"begins with {magic!r} version {version}, not MMIDIDX version 1")
    if code not in _DTYPES or num_ends != num_documents + 1:
        raise _damage(path, f"has token type {code}, {num_ends} ends of {num_documents} documents")
    expected = _HEADER.size + 20 * num_documents + 8
    if len(content) != expected:
        raise _damage(path, f"has {len(content)} bytes, not {expected}")
    lengths = np.frombuffer(content, "<i4", num_documents, _HEADER.size)
    if index_bytes(lengths, _DTYPES[code]) != content.tobytes():
        raise _damage(path, "has pointers that do not follow from its lengths")
    return _DTYPES[code], lengths


def _damage(path: AnyPath, what: str) -> DamageError:
    return DamageError(f"{path} {what}: it is damaged. Restore it, or build the dataset again.")
