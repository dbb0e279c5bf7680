"""The table from token ids to bytes, which decoding and cutting windows use instead of a tokenizer.

`vocabulary-<crc32c>.arrow` has a row for every id up to the padded size:

    bytes          large_binary   the token's bytes; for a special token its name, e.g. `[MASK]`
    special        bool           never part of a text; padding and unused ids have no name
    sentence_end   bool           a text may be cut after it

The schema's metadata contain the tokenizer itself under `tokenizer`, so that anyone with the data
can encode texts to the same ids: the file of a SentencePiece model, a tokenizer.json, or for
tiktoken's kind the pattern and, from the next line on, the ranks as in its files. Older datasets
lack it.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.errors import DamageError
from shards.manifest import TableEntry
from shards.storage.arrow import check_values, read_table
from shards.storage.files import FileEntry, read_verified
from shards.storage.remote import AnyPath
from shards.writer import write_named

SCHEMA = pa.schema(
    [
        pa.field("bytes", pa.large_binary(), nullable=False),
        pa.field("special", pa.bool_(), nullable=False),
        pa.field("sentence_end", pa.bool_(), nullable=False),
    ]
)

_TOKENIZER = b"tokenizer"
_SENTENCE_ENDS = frozenset(".?!;:。？！；…\n")


def ends_sentence(text: str) -> bool:
    """Return whether a token's text contains a sentence end.

    The characters are the union of those in THUDM/GLM, data_utils/datasets.py and blocklm_utils.py.
    """
    return not _SENTENCE_ENDS.isdisjoint(text)


def vocabulary_table(
    pieces: Sequence[bytes], *, special: Collection[int], size: int, tokenizer: bytes = b""
) -> pa.Table:
    """Return the table of a vocabulary, padded to `size` rows.

    Args:
        pieces: the bytes of each id, or the name of a special id; unused ids are empty and
            special.
        special: ids that are never part of a text.
        size: the padded vocabulary size.
        tokenizer: the data of the tokenizer, kept with the table; empty: none.
    """
    padded = [*pieces, *[b""] * (size - len(pieces))]
    is_special = [i in special or i >= len(pieces) for i in range(size)]
    ends = [
        not special_piece and ends_sentence(piece.decode(errors="replace"))
        for piece, special_piece in zip(padded, is_special, strict=True)
    ]
    kept = {_TOKENIZER: tokenizer} if tokenizer else None
    return pa.table([padded, is_special, ends], schema=SCHEMA.with_metadata(kept))


def write_vocabulary(directory: AnyPath, table: pa.Table) -> TableEntry:
    """Write a vocabulary to a file named by its content's crc32c, and return the file's entry."""
    table = table.cast(SCHEMA.with_metadata(table.schema.metadata))
    return write_named(directory / "vocabulary", table, directory=directory)


class Vocabulary:
    """A vocabulary on disk."""

    def __init__(self, table: pa.Table) -> None:
        self._pieces = table["bytes"].combine_chunks()
        self.special: NDArray[np.bool_] = table["special"].to_numpy()
        """Whether a token is never part of a text, by id."""
        self.sentence_end: NDArray[np.bool_] = table["sentence_end"].to_numpy()
        """Whether a text may be cut after a token, by id."""
        self.tokenizer: bytes = (table.schema.metadata or {}).get(_TOKENIZER, b"")
        """The data of the tokenizer; empty if the dataset does not have them."""

    @classmethod
    def open(cls, path: AnyPath, entry: FileEntry) -> "Vocabulary":
        """Return the vocabulary in a file.

        Args:
            path: the file.
            entry: its entry in the manifest.

        Raises:
            DamageError: the file is missing, differs from its entry or is not a vocabulary.
        """
        table = read_table(read_verified(path, entry), path)
        if not table.schema.equals(SCHEMA):
            raise DamageError(
                f"{path} is not a vocabulary: it has the columns {table.schema.names}, not "
                f"{SCHEMA.names}. Restore it from a copy, or build the dataset again."
            )
        return cls(check_values(table, path))

    def __len__(self) -> int:
        return len(self.special)

    def pieces(self) -> list[bytes]:
        """Return the bytes of every id, or the name of a special token."""
        pieces: list[bytes] = self._pieces.to_pylist()
        return pieces

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """Return the text of token ids; special tokens appear as ⟨name⟩, to differ from text.

        Raises:
            DamageError: an id is outside the vocabulary.
        """
        return self.decode_bytes(ids).decode(errors="replace")

    def decode_bytes(self, ids: Sequence[int] | NDArray[Any]) -> bytes:
        """Return the bytes of token ids, which may end within a character.

        Raises:
            DamageError: an id is outside the vocabulary.
        """
        return b"".join(self._piece(token) for token in np.asarray(ids, np.int64).tolist())

    def _piece(self, token: int) -> bytes:
        if not 0 <= token < len(self):
            raise DamageError(f"token id {token} is outside the vocabulary of {len(self)} ids.")
        piece: bytes = self._pieces[token].as_py()
        if self.special[token]:
            return f"⟨{piece.decode(errors='replace') or token}⟩".encode()
        return piece
