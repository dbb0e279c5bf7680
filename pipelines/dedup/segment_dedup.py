"""Exact dedup within each input file of a segment, and the files for dedup across segments.

    .hashes   the distinct text hashes of each file, sorted, with order, row and number of copies
    .slots    the signed documents: order, row, slots          (near-duplicates only, bands.py)
    .bands    the hashes of their bands, sorted                (near-duplicates only, bands.py)

Rows are those of .documents. The result of dedup does not depend on which documents share a
segment: the first document of the corpus with a text is also the first one of its file. This is not
so for similar texts, because similarity is not transitive; they are compared only across all
segments (near.py). Equal texts of different files of a segment are also left to the later stage,
so that the tokens that a file adds to a source do not depend on the other files of its segment:
these tokens decide how shards and generations are cut.
"""

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import SignedDocuments, write_bands, write_slots
from pipelines.dedup.exact import MAX_COPIES, run_starts
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, Signatures
from pipelines.segments.rows import DUPLICATE
from pipelines.segments.segment import DedupCounts, with_suffix
from shards.storage.files import FileEntry
from shards.storage.remote import AnyPath
from shards.tables import write_table

SIGNATURE = pa.binary(8 * NUM_BANDS + NUM_SLOTS)
"""The type of a packed signature: the bands, little-endian, then the slots. Unsigned texts have
null."""


def pack_signatures(signatures: Signatures) -> pa.Array:
    """Return signatures as a column of SIGNATURE."""
    num = len(signatures.signed)
    rows = np.empty((num, SIGNATURE.byte_width), np.uint8)
    rows[:, : 8 * NUM_BANDS] = np.ascontiguousarray(signatures.bands, "<u8").view(np.uint8)
    rows[:, 8 * NUM_BANDS :] = signatures.slots
    validity = pa.array(signatures.signed).buffers()[1]
    return pa.Array.from_buffers(SIGNATURE, num, [validity, pa.py_buffer(rows)])


def _rows(packed: pa.Array) -> np.ndarray:
    """Return a column of SIGNATURE as uint8[n, width]; rows of nulls are arbitrary."""
    width = SIGNATURE.byte_width
    data = np.frombuffer(packed.buffers()[1] or b"", np.uint8)
    return data[packed.offset * width :][: len(packed) * width].reshape(-1, width)


class SegmentDedup:
    """Deduplicates the documents of each file of one segment."""

    def __init__(self, documents: pa.Table, *, files: np.ndarray | None = None) -> None:
        """Find the equal texts.

        Args:
            documents: The documents, sorted by order, with the columns hash_high and hash_low; if
                there is a column `signature` of type SIGNATURE, files for near-duplicates are
                written too.
            files: int[n], the number of each document's file; None if there is one file.
        """
        self._order = documents["order"].to_numpy()
        self._high, self._low = (documents[f"hash_{half}"].to_numpy() for half in ("high", "low"))
        # The sort is stable, so the first of equal hashes has the smallest order.
        keys = [self._low, self._high]
        if files is not None and files.any():
            keys.insert(0, files)
        self._by_hash = np.lexsort(keys)
        self._first = run_starts(*(key[self._by_hash] for key in keys))
        self.kept = np.zeros(len(self._order), bool)
        """bool[n]: whether no earlier document of the same file has the text."""
        self.kept[self._by_hash[self._first]] = True
        self.files: dict[str, FileEntry] = {}
        """The files that `write` has written, by suffix."""
        near = "signature" in documents.column_names
        self._signatures = documents["signature"] if near else None

    @property
    def reasons(self) -> pa.Array:
        """The reason why each document is dropped; null if it is kept."""
        return pa.array(np.full(len(self.kept), DUPLICATE), pa.string(), mask=self.kept)

    def write(self, stem: AnyPath) -> DedupCounts:
        """Write the segment's files that dedup reads, and return the numbers of their rows."""
        row = (np.cumsum(self.kept) - 1).astype(np.uint32)
        starts = np.flatnonzero(self._first)
        distinct = self._by_hash[starts]
        copies = np.diff(starts, append=len(self._first))
        hashes = {
            "hash_high": self._high[distinct],
            "hash_low": self._low[distinct],
            "order": self._order[distinct],
            "row": row[distinct],
            "copies": np.minimum(copies, MAX_COPIES).astype(np.uint8),
        }
        self.files["hashes"] = write_table(with_suffix(stem, "hashes"), pa.table(hashes))
        if self._signatures is None:
            return DedupCounts(texts=len(distinct))
        signed = np.flatnonzero(self._signatures.is_valid().to_numpy() & self.kept)
        raw = _rows(self._signatures.combine_chunks())[signed]
        bands = np.ascontiguousarray(raw[:, : 8 * NUM_BANDS]).view("<u8")
        slots = SignedDocuments(self._order[signed], row[signed], raw[:, 8 * NUM_BANDS :])
        self.files["slots"] = write_slots(with_suffix(stem, "slots"), slots)
        self.files["bands"] = write_bands(with_suffix(stem, "bands"), [*bands.T], order=slots.order)
        return DedupCounts(texts=len(distinct), signed=len(signed))
