"""The two files in which a segment hands on its signatures.

A segment's *signers* are its signed documents, numbered by order; of equal texts only the first is
one. Numbers in files are little-endian:

    .slots   order uint64[n] | row uint32[n] | slots uint8[n, 112]
             by signer; row is its place in .documents
    .bands   index uint32[14, 1025] | hash uint64[m] | order uint64[m] | signer uint32[m]
             band by band, m = 14 n, sorted by hash and signer; index[b, i] is the first row with
             hash >= i * 2**54
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, similarity
from shards.storage.files import FileEntry, atomic_write
from shards.storage.remote import AnyPath
from shards.storage.sparse import SparseFile
from shards.tables import between

EDGES = 1024
"""Even ranges of the hash that the index distinguishes; an item takes one or several of them."""

PAIRS_AT_ONCE = 1 << 15
"""Pairs whose slots are compared together: 15 MB."""


@dataclass(frozen=True, slots=True)
class Signers:
    """The signers of a segment: `order` uint64[n], `row` uint32[n], `slots` uint8[n, 112]."""

    order: np.ndarray
    row: np.ndarray
    slots: np.ndarray


@dataclass(frozen=True, slots=True)
class BandRows:
    """Rows of one band: `hash` uint64[n], `order` uint64[n] and `signer` uint32[n].

    The order of a signer is in every band, because the .slots file of a large segment is too
    long to be looked through by every range of every band.
    """

    hash: np.ndarray
    order: np.ndarray
    signer: np.ndarray


def are_similar(one: np.ndarray, other: np.ndarray, *, threshold: float) -> np.ndarray:
    """Return which pairs of rows of slots have an estimated similarity of at least the threshold.

    Args:
        one: uint8[n, NUM_SLOTS].
        other: uint8[n, NUM_SLOTS].
        threshold: Least similarity.
    """
    passed = np.ones(len(one), bool)
    for start in range(0, len(one), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        passed[part] = similarity(one[part], other[part]) >= threshold
    return passed


def write_slots(path: AnyPath, signers: Signers) -> FileEntry:
    """Write a .slots file and return its entry."""
    with atomic_write(path) as handle:
        handle.write(np.ascontiguousarray(signers.order, "<u8"))
        handle.write(np.ascontiguousarray(signers.row, "<u4"))
        handle.write(np.ascontiguousarray(signers.slots, np.uint8))
    return handle.entry


def read_slots(path: AnyPath, name: str, signers: np.ndarray | None = None) -> np.ndarray:
    """Return a column of a .slots file for some signers or for all.

    Args:
        path: The file.
        name: order, row or slots.
        signers: int[n]; None for all of them.
    """
    file = SparseFile(path)
    num = len(file.data) // _SIGNER_BYTES
    before, width, dtype = _SLOT_COLUMNS[name]
    start, stop = before * num, (before + width) * num
    if signers is None:
        file.fetch(np.array([[start, stop]]))
    else:
        starts = start + signers.astype(np.int64) * width
        file.fetch(np.stack([starts, starts + width], axis=1))
    values = file.data[start:stop].view(dtype)
    values = values.reshape(num, NUM_SLOTS) if name == "slots" else values
    return values if signers is None else values[signers]


def signers_between(path: AnyPath, *, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the signers of a .slots file with low <= order < high (int64[n]), and their orders.

    Orders are uniformly distributed hashes: only those around the two ends of the range, and what
    lies between, are fetched.

    Args:
        path: The file.
        low: Least order.
        high: First order above the range; may be 2**64.
    """
    file = SparseFile(path)
    num = len(file.data) // _SIGNER_BYTES
    orders = file.data[: 8 * num].view("<u8")
    slack = 64 + 2 * int(num**0.5)
    while True:
        first = max(0, (num * low >> 64) - slack)
        last = min(num, (num * high >> 64) + slack)
        file.fetch(np.array([[8 * first, 8 * last]]))
        inside = between(orders[first:last], low, high)
        start, stop = first + inside.start, first + inside.stop
        if (start > first or not first) and (stop < last or last == num):
            return np.arange(start, stop), orders[start:stop]
        slack *= 4


_SLOT_COLUMNS = {"order": (0, 8, "<u8"), "row": (8, 4, "<u4"), "slots": (12, NUM_SLOTS, "u1")}
"""Columns of a .slots file: a signer's bytes in the columns before, in this one, and its type."""

_SIGNER_BYTES = 12 + NUM_SLOTS


def write_bands(path: AnyPath, bands: Sequence[np.ndarray], *, order: np.ndarray) -> FileEntry:
    """Write a .bands file and return its entry.

    Args:
        path: The file.
        bands: The hashes of the signers in each band, uint64[n].
        order: uint64[n].
    """
    signers = [np.argsort(hashes, kind="stable").astype("<u4") for hashes in bands]
    edges = np.arange(EDGES, dtype=np.uint64) << np.uint64(64 - EDGES.bit_length() + 1)
    index = np.zeros((NUM_BANDS, EDGES + 1), "<u4")
    start = 0
    for number, rows in enumerate(signers):
        index[number, :-1] = start + np.searchsorted(bands[number][rows], edges)
        start += len(rows)
        index[number, -1] = start
    with atomic_write(path) as handle:
        handle.write(index)
        for hashes, rows in zip(bands, signers, strict=True):
            handle.write(np.ascontiguousarray(hashes[rows], "<u8"))
        for rows in signers:
            handle.write(np.ascontiguousarray(order[rows], "<u8"))
        for rows in signers:
            handle.write(rows)
    return handle.entry


def open_bands(path: AnyPath, band: int, *, first: int, last: int) -> BandRows:
    """Return the rows of one band of a .bands file from edge `first` to edge `last`, mapped."""
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


_BAND_COLUMNS = {"hash": "<u8", "order": "<u8", "signer": "<u4"}

_INDEX_BYTES = NUM_BANDS * (EDGES + 1) * 4
