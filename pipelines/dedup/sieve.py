"""Dedup within a segment: which of its documents fall at once, and what is handed on of all.

    .hashes   the distinct text hashes, sorted, with order, row and number of copies
    .slots    the signed documents: order, row, slots          (near-duplicates only, bands.py)
    .bands    their bands' hashes, sorted, by signer           (near-duplicates only, bands.py)
    .links    pairs of signers that are similar, sorted        (near-duplicates only)

Rows are those of .documents; a document that fell as a near-duplicate has none, and GONE stands for
it: documents elsewhere are still compared with it.
"""

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import Neighbours, Signers, neighbours, write_bands, write_slots
from pipelines.dedup.drops import GONE
from pipelines.dedup.exact import MOST_COPIES
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, Signatures
from pipelines.segments.rows import DUPLICATE, NEAR_DUPLICATE
from pipelines.segments.segment import Sieved
from pipelines.segments.tables import write_table
from shards.storage.files import FileEntry
from shards.storage.remote import AnyPath

SIGNATURE = pa.binary(8 * NUM_BANDS + NUM_SLOTS)
"""A signature between the stages: the bands, little-endian, and the slots; null for none."""


def packed(signatures: Signatures) -> pa.Array:
    """Return signatures as a column of SIGNATURE."""
    num = len(signatures.signed)
    rows = np.empty((num, SIGNATURE.byte_width), np.uint8)
    rows[:, : 8 * NUM_BANDS] = np.ascontiguousarray(signatures.bands, "<u8").view(np.uint8)
    rows[:, 8 * NUM_BANDS :] = signatures.slots
    validity = pa.array(signatures.signed).buffers()[1]
    return pa.Array.from_buffers(SIGNATURE, num, [validity, pa.py_buffer(rows)])


class Sieve:
    """Dedup among the documents of one segment."""

    def __init__(self, documents: pa.Table, *, threshold: float) -> None:
        """Look at the documents.

        Args:
            documents: Sorted by order, with hash_high and hash_low; with a column `signature` of
                SIGNATURE, near-duplicates are looked for.
            threshold: Least similarity of a near-duplicate to the document that it falls for.
        """
        self._order = documents["order"].to_numpy()
        self._high, self._low = (documents[f"hash_{half}"].to_numpy() for half in ("high", "low"))
        num = len(self._order)
        # Sorting is stable: of equal hashes the first has the smallest order.
        self._by_hash = np.lexsort((self._low, self._high))
        high, low = self._high[self._by_hash], self._low[self._by_hash]
        self._first = np.ones(num, bool)
        self._first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        self.doubles = np.ones(num, bool)
        """bool[n]: equal to a document before."""
        self.doubles[self._by_hash[self._first]] = False
        self.near = np.zeros(num, bool)
        """bool[n]: no double, but similar to a document before."""
        self.files: dict[str, FileEntry] = {}
        """What was written, by suffix."""
        self._found: Neighbours | None = None
        if "signature" in documents.column_names:
            self._look_for_near(documents["signature"], threshold)

    def _look_for_near(self, column: pa.ChunkedArray, threshold: float) -> None:
        signed = column.is_valid().to_numpy()
        self._signers = np.flatnonzero(signed & ~self.doubles)
        raw = np.frombuffer(b"".join(column.take(self._signers).to_pylist()), np.uint8)
        raw = raw.reshape(-1, SIGNATURE.byte_width)
        bands = np.ascontiguousarray(raw[:, : 8 * NUM_BANDS]).view("<u8")
        self._slots = raw[:, 8 * NUM_BANDS :]
        self._found = neighbours(bands, self._slots, threshold=threshold)
        self.near[self._signers[self._found.links[:, 0]]] = True

    @property
    def stay(self) -> np.ndarray:
        """bool[n]: which documents leave the segment."""
        return ~(self.doubles | self.near)

    @property
    def reasons(self) -> pa.Array:
        """Why each document falls, null where it stays."""
        reasons = np.full(len(self.near), None, object)
        reasons[self.doubles] = DUPLICATE
        reasons[self.near] = NEAR_DUPLICATE
        return pa.array(reasons, pa.string())

    def write(self, stem: AnyPath) -> Sieved:
        """Write the files of a segment that dedup reads, and return what they came to."""
        stay = self.stay
        row = np.where(stay, np.cumsum(stay) - 1, GONE).astype(np.uint32)
        starts = np.flatnonzero(self._first)
        kept = self._by_hash[starts]
        copies = np.diff(starts, append=len(self._first))
        hashes = {
            "hash_high": self._high[kept],
            "hash_low": self._low[kept],
            "order": self._order[kept],
            "row": row[kept],
            "copies": np.minimum(copies, MOST_COPIES).astype(np.uint8),
        }
        files = self.files
        files["hashes"] = write_table(stem.with_name(f"{stem.name}.hashes"), pa.table(hashes))
        if self._found is None:
            return Sieved(texts=len(kept))
        signers = Signers(self._order[self._signers], row[self._signers], self._slots)
        files["slots"] = write_slots(stem.with_name(f"{stem.name}.slots"), signers)
        bands = stem.with_name(f"{stem.name}.bands")
        files["bands"] = write_bands(bands, self._found.bands)
        links = self._found.links
        files["links"] = write_table(
            stem.with_name(f"{stem.name}.links"),
            pa.table({"signer": links[:, 0].copy(), "smaller": links[:, 1].copy()}),
        )
        return Sieved(
            texts=len(kept),
            signed=len(self._signers),
            links=len(links),
            compared=self._found.compared,
            failed=self._found.failed,
        )
