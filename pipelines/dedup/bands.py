"""The two files with the MinHash signatures of a segment.

A document is signed if its text has at least one 5-gram and no earlier document of its file has an
equal text. Each signed document has a row in .slots and 14 rows in .bands. Numbers are
little-endian:

    .slots   order uint64[n] | row uint32[n] | slots uint8[n, 112]
             sorted by order; row is the document's row in .documents
    .bands   index uint32[14, 1025] | hash uint64[m] | order uint64[m] | slot_row uint32[m]
             band by band, m = 14 n, sorted by hash and slot_row, which is the document's row in
             .slots; index[b, i] is the first row with hash >= i * 2**54
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, similarity
from shards.storage.files import FileEntry, atomic_write
from shards.storage.remote import AnyPath
from shards.storage.sparse import SparseFile
from shards.tables import slice_between

EDGES = 1024
"""The number of equal ranges of a band's hash whose first rows the index gives. An item reads one
or more of these ranges."""

PAIRS_AT_ONCE = 1 << 15
"""The number of pairs whose slots are compared at once, which takes 15 MB."""


@dataclass(frozen=True, slots=True)
class SignedDocuments:
    """Signed documents of a segment: `order` uint64[n], `row` uint32[n], `slots` uint8[n, 112]."""

    order: np.ndarray
    row: np.ndarray
    slots: np.ndarray


@dataclass(frozen=True, slots=True)
class BandRows:
    """Rows of one band: `hash` uint64[n], `order` uint64[n] and `slot_row` uint32[n].

    Every band repeats the orders of the documents, because the .slots file of a large segment is
    too long to be read for every range of every band.
    """

    hash: np.ndarray
    order: np.ndarray
    slot_row: np.ndarray


def are_similar(one: np.ndarray, other: np.ndarray, *, threshold: float) -> np.ndarray:
    """Return the mask (bool[n]) of the pairs whose estimated similarity reaches the threshold.

    Args:
        one: The slots of the first document of each pair, uint8[n, NUM_SLOTS].
        other: The slots of the second document of each pair, uint8[n, NUM_SLOTS].
        threshold: The minimum similarity.
    """
    passed = np.ones(len(one), bool)
    for start in range(0, len(one), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        passed[part] = similarity(one[part], other[part]) >= threshold
    return passed


def write_slots(path: AnyPath, documents: SignedDocuments) -> FileEntry:
    """Write a .slots file and return its entry."""
    with atomic_write(path) as handle:
        handle.write(np.ascontiguousarray(documents.order, "<u8"))
        handle.write(np.ascontiguousarray(documents.row, "<u4"))
        handle.write(np.ascontiguousarray(documents.slots, np.uint8))
    return handle.entry


def read_slots(path: AnyPath, name: str, rows: np.ndarray | None = None) -> np.ndarray:
    """Return a column of a .slots file, for some or all of the file's rows.

    Args:
        path: The file.
        name: order, row or slots.
        rows: The rows to read, int[n]; None for all rows.
    """
    file = SparseFile(path)
    num = len(file.data) // _ROW_BYTES
    before, width, dtype = _SLOT_COLUMNS[name]
    start, stop = before * num, (before + width) * num
    if rows is None:
        file.fetch(np.array([[start, stop]]))
    else:
        starts = start + rows.astype(np.int64) * width
        file.fetch(np.stack([starts, starts + width], axis=1))
    values = file.data[start:stop].view(dtype)
    values = values.reshape(num, NUM_SLOTS) if name == "slots" else values
    return values if rows is None else values[rows]


def slot_rows_between(path: AnyPath, *, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (int64[n]) of a .slots file with low <= order < high, and their orders.

    Orders are uniformly distributed hashes, so it is approximately known where the range begins and
    ends, and only the orders around and between these places are fetched.

    Args:
        path: The file.
        low: The first order of the range.
        high: The first order above the range; may be 2**64.
    """
    file = SparseFile(path)
    num = len(file.data) // _ROW_BYTES
    orders = file.data[: 8 * num].view("<u8")
    slack = 64 + 2 * int(num**0.5)
    while True:
        first = max(0, (num * low >> 64) - slack)
        last = min(num, (num * high >> 64) + slack)
        file.fetch(np.array([[8 * first, 8 * last]]))
        inside = slice_between(orders[first:last], low, high)
        start, stop = first + inside.start, first + inside.stop
        if (start > first or not first) and (stop < last or last == num):
            return np.arange(start, stop), orders[start:stop]
        slack *= 4


_SLOT_COLUMNS = {"order": (0, 8, "<u8"), "row": (8, 4, "<u4"), "slots": (12, NUM_SLOTS, "u1")}
"""For each column of a .slots file, the number of bytes that a row has in the preceding columns,
the number of bytes that it has in this column, and the type."""

_ROW_BYTES = 12 + NUM_SLOTS


def write_bands(path: AnyPath, bands: Sequence[np.ndarray], *, order: np.ndarray) -> FileEntry:
    """Write a .bands file and return its entry.

    Args:
        path: The file.
        bands: The hashes of the signed documents in each band, uint64[n].
        order: The orders of the documents, uint64[n].
    """
    sorted_rows = [np.argsort(hashes, kind="stable").astype("<u4") for hashes in bands]
    edges = np.arange(EDGES, dtype=np.uint64) << np.uint64(64 - EDGES.bit_length() + 1)
    index = np.zeros((NUM_BANDS, EDGES + 1), "<u4")
    start = 0
    for number, rows in enumerate(sorted_rows):
        index[number, :-1] = start + np.searchsorted(bands[number][rows], edges)
        start += len(rows)
        index[number, -1] = start
    with atomic_write(path) as handle:
        handle.write(index)
        for hashes, rows in zip(bands, sorted_rows, strict=True):
            handle.write(np.ascontiguousarray(hashes[rows], "<u8"))
        for rows in sorted_rows:
            handle.write(np.ascontiguousarray(order[rows], "<u8"))
        for rows in sorted_rows:
            handle.write(rows)
    return handle.entry


def open_bands(path: AnyPath, band: int, *, first: int, last: int) -> BandRows:
    """Return a band's rows in a .bands file from edge `first` to edge `last`, memory-mapped."""
    file = SparseFile(path)
    edges = 4 * (band * (EDGES + 1) + np.array([first, last]))
    file.fetch(np.stack([edges, edges + 4], axis=1))
    start, stop = (int(file.data[edge : edge + 4].view("<u4")[0]) for edge in edges.tolist())
    widths = np.array([np.dtype(dtype).itemsize for dtype in _BAND_COLUMNS.values()])
    num = (len(file.data) - _INDEX_BYTES) // int(widths.sum())
    columns = _INDEX_BYTES + num * (np.cumsum(widths) - widths)
    ranges = np.stack([columns + widths * start, columns + widths * stop], axis=1)
    file.fetch(ranges)
    return BandRows(
        **{
            name: file.data[low:high].view(dtype)
            for (low, high), (name, dtype) in zip(
                ranges.tolist(), _BAND_COLUMNS.items(), strict=True
            )
        }
    )


_BAND_COLUMNS = {"hash": "<u8", "order": "<u8", "slot_row": "<u4"}

_INDEX_BYTES = NUM_BANDS * (EDGES + 1) * 4
