"""Dedup within a segment: which of its documents are dropped at once, and what is handed on of all.

    .hashes   the distinct text hashes, sorted, with order, row and number of copies
    .slots    the signed documents: order, row, slots          (near-duplicates only, bands.py)
    .bands    their bands' hashes, sorted, by signer           (near-duplicates only, bands.py)
    .links    pairs of signers that are similar, sorted        (near-duplicates only)

Rows are those of .documents. A document dropped as a near-duplicate has none there, and its row is
NO_ROW: documents elsewhere are still compared with it.
"""

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import SignerMatches, Signers, match_signers, write_bands, write_slots
from pipelines.dedup.drops import NO_ROW
from pipelines.dedup.exact import MOST_COPIES
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, Signatures
from pipelines.dedup.runs import run_starts
from pipelines.segments.rows import DUPLICATE, NEAR_DUPLICATE
from pipelines.segments.segment import SieveCounts, with_suffix
from shards.storage.files import FileEntry
from shards.storage.remote import AnyPath
from shards.tables import write_table

SIGNATURE = pa.binary(8 * NUM_BANDS + NUM_SLOTS)
"""A signature between the stages: the bands, little-endian, and the slots; null if not signed."""


def pack_signatures(signatures: Signatures) -> pa.Array:
    """Return signatures as a column of SIGNATURE."""
    num = len(signatures.signed)
    rows = np.empty((num, SIGNATURE.byte_width), np.uint8)
    rows[:, : 8 * NUM_BANDS] = np.ascontiguousarray(signatures.bands, "<u8").view(np.uint8)
    rows[:, 8 * NUM_BANDS :] = signatures.slots
    validity = pa.array(signatures.signed).buffers()[1]
    return pa.Array.from_buffers(SIGNATURE, num, [validity, pa.py_buffer(rows)])


def _rows(packed: pa.Array) -> np.ndarray:
    """Return a column of SIGNATURE as uint8[n, width]; what stands for null is arbitrary."""
    width = SIGNATURE.byte_width
    data = np.frombuffer(packed.buffers()[1] or b"", np.uint8)
    return data[packed.offset * width :][: len(packed) * width].reshape(-1, width)


class Sieve:
    """Dedup among the documents of one segment."""

    def __init__(self, documents: pa.Table, *, threshold: float) -> None:
        """Find the duplicates.

        Args:
            documents: Sorted by order, with hash_high and hash_low; near-duplicates are looked for
                if there is a column `signature` of SIGNATURE.
            threshold: Least similarity of a near-duplicate to the document kept in its place.
        """
        self._order = documents["order"].to_numpy()
        self._high, self._low = (documents[f"hash_{half}"].to_numpy() for half in ("high", "low"))
        num = len(self._order)
        # Sorting is stable: of equal hashes the first has the smallest order.
        self._by_hash = np.lexsort((self._low, self._high))
        self._first = run_starts(self._high[self._by_hash], self._low[self._by_hash])
        self.equal = np.ones(num, bool)
        """bool[n]: its text is that of a document before."""
        self.equal[self._by_hash[self._first]] = False
        self.near = np.zeros(num, bool)
        """bool[n]: not equal, but similar to a document before."""
        self.files: dict[str, FileEntry] = {}
        """What was written, by suffix."""
        self._matches: SignerMatches | None = None
        if "signature" in documents.column_names:
            self._look_for_near(documents["signature"], threshold)

    def _look_for_near(self, column: pa.ChunkedArray, threshold: float) -> None:
        signed = column.is_valid().to_numpy()
        self._signers = np.flatnonzero(signed & ~self.equal)
        raw = _rows(column.combine_chunks())[self._signers]
        bands = np.ascontiguousarray(raw[:, : 8 * NUM_BANDS]).view("<u8")
        self._slots = raw[:, 8 * NUM_BANDS :]
        self._matches = match_signers(bands, self._slots, threshold=threshold)
        self.near[self._signers[self._matches.links[:, 0]]] = True

    @property
    def kept(self) -> np.ndarray:
        """bool[n]: neither equal nor similar to a document before."""
        return ~(self.equal | self.near)

    @property
    def reasons(self) -> pa.Array:
        """Why each document is dropped, null where it is kept."""
        reasons = np.full(len(self.near), None, object)
        reasons[self.equal] = DUPLICATE
        reasons[self.near] = NEAR_DUPLICATE
        return pa.array(reasons, pa.string())

    def write(self, stem: AnyPath) -> SieveCounts:
        """Write the files of a segment that dedup reads, and return what is in them."""
        kept = self.kept
        row = np.where(kept, np.cumsum(kept) - 1, NO_ROW).astype(np.uint32)
        starts = np.flatnonzero(self._first)
        distinct = self._by_hash[starts]
        copies = np.diff(starts, append=len(self._first))
        hashes = {
            "hash_high": self._high[distinct],
            "hash_low": self._low[distinct],
            "order": self._order[distinct],
            "row": row[distinct],
            "copies": np.minimum(copies, MOST_COPIES).astype(np.uint8),
        }
        files = self.files
        files["hashes"] = write_table(with_suffix(stem, "hashes"), pa.table(hashes))
        if self._matches is None:
            return SieveCounts(texts=len(distinct))
        signers = Signers(self._order[self._signers], row[self._signers], self._slots)
        files["slots"] = write_slots(with_suffix(stem, "slots"), signers)
        files["bands"] = write_bands(
            with_suffix(stem, "bands"), self._matches.bands, order=signers.order
        )
        signer, smaller = (side.copy() for side in self._matches.links.T)
        links = pa.table({"signer": signer, "smaller": smaller})
        files["links"] = write_table(with_suffix(stem, "links"), links)
        return SieveCounts(
            texts=len(distinct),
            signed=len(self._signers),
            links=len(links),
            compared=self._matches.compared,
            failed=self._matches.failed,
        )
