"""Near-duplicates within a segment, and the two files in which its signatures are handed on.

A segment's *signers* are its signed documents, numbered by order; of equal texts the first alone.
Numbers in files are little-endian:

    .slots   order uint64[n] | row uint32[n] | slots uint8[n, 112]
             by signer; row is its place in .documents, or GONE
    .bands   index uint32[14, 1025] | hash uint64[m] | signer uint32[m] | copies uint8[m]
             band by band, sorted by hash; index[b, i] is where those with hash >= i * 2**54 begin

Of the signers that share a band's hash the smallest is handed on, with the number of those that it
stands for, and so is each that is not similar enough to that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.dedup.exact import MOST_COPIES
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, similarity
from pipelines.segments.sparse import SparseFile
from shards.storage.files import FileEntry, atomic_write, map_bytes
from shards.storage.remote import AnyPath, RemotePath

EDGES = 1024
"""Even ranges of the hash that the index tells apart: tasks take one or several."""

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
    """Rows of one band: `hash` uint64[n], `signer` uint32[n], `copies` uint8[n]."""

    hash: np.ndarray
    signer: np.ndarray
    copies: np.ndarray


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What the bands say of a segment's signers."""

    bands: Sequence[BandRows]
    """What is handed on, a band each."""
    links: np.ndarray
    """uint32[m, 2], sorted: a signer, and a smaller one that it is similar to."""
    compared: int
    """Signers met as not the smallest with their hash, once per band."""
    failed: int
    """Of these, those not similar enough."""


def similar(one: np.ndarray, other: np.ndarray, *, threshold: float) -> np.ndarray:
    """Return which pairs (rows of slots) have an estimated similarity of the threshold or more."""
    found = np.ones(len(one), bool)
    for at in range(0, len(one), PAIRS_AT_ONCE):
        part = slice(at, at + PAIRS_AT_ONCE)
        found[part] = similarity(one[part], other[part]) >= threshold
    return found


def neighbours(bands: np.ndarray, slots: np.ndarray, *, threshold: float) -> Neighbours:
    """Return what the signers of a segment have in common.

    Args:
        bands: uint64[n, NUM_BANDS].
        slots: uint8[n, NUM_SLOTS].
        threshold: Least similarity; 0 asks for a shared band alone.
    """
    handed, links = [], [np.zeros((0, 2), np.uint32)]
    compared = failed = 0
    for band in range(NUM_BANDS):
        rows = np.argsort(bands[:, band], kind="stable").astype(np.uint32)
        hashes = bands[rows, band]
        first = np.ones(len(rows), bool)
        first[1:] = hashes[1:] != hashes[:-1]
        smallest = rows[np.flatnonzero(first)[np.cumsum(first) - 1]]
        others = np.flatnonzero(~first)
        pairs = np.stack([rows[others], smallest[others]], axis=1)
        if threshold:
            passed = similar(slots[pairs[:, 0]], slots[pairs[:, 1]], threshold=threshold)
        else:
            passed = np.ones(len(pairs), bool)
        stay = first.copy()
        stay[others[~passed]] = True
        handed.append(BandRows(hashes[stay], rows[stay], _copies(first, stay)))
        links.append(pairs[passed])
        compared += len(pairs)
        failed += int((~passed).sum())
    return Neighbours(handed, _distinct(np.concatenate(links)), compared, failed)


def _distinct(pairs: np.ndarray) -> np.ndarray:
    """Return the distinct rows of uint32[n, 2], sorted; as one number each they sort fast."""
    both = np.unique(pairs[:, 0].astype(np.uint64) << np.uint64(32) | pairs[:, 1])
    distinct: np.ndarray = np.stack([both >> np.uint64(32), both], axis=1).astype(np.uint32)
    return distinct


def _copies(first: np.ndarray, stay: np.ndarray) -> np.ndarray:
    """Return how many of a group each row that stays stands for: the first for those that go."""
    if not len(first):
        return np.zeros(0, np.uint8)
    gone = np.add.reduceat(~stay, np.flatnonzero(first), dtype=np.int64)
    copies = np.ones(len(first), np.int64)
    copies[first] += gone
    counts: np.ndarray = np.minimum(copies[stay], MOST_COPIES).astype(np.uint8)
    return counts


def write_slots(path: AnyPath, signers: Signers) -> FileEntry:
    """Write a .slots file and return its entry."""
    with atomic_write(path) as handle:
        handle.write(np.ascontiguousarray(signers.order, "<u8"))
        handle.write(np.ascontiguousarray(signers.row, "<u4"))
        handle.write(np.ascontiguousarray(signers.slots, np.uint8))
    return handle.entry


def read_slots(path: AnyPath, name: str, signers: np.ndarray | None = None) -> np.ndarray:
    """Return a column of a .slots file, of some signers or of all.

    Args:
        path: The file.
        name: order, row or slots.
        signers: int[n]; None: all of them.
    """
    file = SparseFile(path) if isinstance(path, RemotePath) else None
    data = file.data if file else map_bytes(path)
    num = len(data) // _SIGNER_BYTES
    before, width, kind = _SLOT_COLUMNS[name]
    part = slice(before * num, (before + width) * num)
    if file:
        rows = np.arange(num) if signers is None else np.asarray(signers, np.int64)
        starts = part.start + rows * width
        file.need(np.stack([starts, starts + width], axis=1))
    values = data[part].view(kind)
    values = values.reshape(num, NUM_SLOTS) if name == "slots" else values
    return values if signers is None else values[signers]


_SLOT_COLUMNS = {"order": (0, 8, "<u8"), "row": (8, 4, "<u4"), "slots": (12, NUM_SLOTS, "u1")}
"""Of a .slots file: bytes of a signer in the columns before, in this one, and its type."""

_SIGNER_BYTES = 12 + NUM_SLOTS


def write_bands(path: AnyPath, bands: Sequence[BandRows]) -> FileEntry:
    """Write a .bands file and return its entry."""
    edges = np.arange(EDGES, dtype=np.uint64) << np.uint64(64 - EDGES.bit_length() + 1)
    index = np.zeros((NUM_BANDS, EDGES + 1), "<u4")
    start = 0
    for number, band in enumerate(bands):
        index[number, :-1] = start + np.searchsorted(band.hash, edges)
        start += len(band.hash)
        index[number, -1] = start
    with atomic_write(path) as handle:
        handle.write(index)
        for name, kind in (("hash", "<u8"), ("signer", "<u4"), ("copies", "u1")):
            for band in bands:
                handle.write(np.ascontiguousarray(getattr(band, name), kind))
    return handle.entry


def open_bands(path: AnyPath, band: int, *, first: int, last: int) -> BandRows:
    """Return the rows of one band of a .bands file from edge `first` to edge `last`, mapped."""
    file = SparseFile(path) if isinstance(path, RemotePath) else None
    data = file.data if file else map_bytes(path)
    edges = 4 * (band * (EDGES + 1) + np.array([first, last]))
    if file:
        file.need(np.stack([edges, edges + 4], axis=1))
    num = (len(data) - _INDEX_BYTES) // _BAND_ROW_BYTES
    part = slice(*(int(data[edge : edge + 4].view("<u4")[0]) for edge in edges.tolist()))
    starts = _INDEX_BYTES + num * np.array([0, 8, 12])
    if file:
        widths = np.array([8, 4, 1])
        file.need(np.stack([starts + widths * part.start, starts + widths * part.stop], axis=1))
    columns = [
        data[at : at + num * np.dtype(kind).itemsize].view(kind)[part]
        for at, kind in zip(starts.tolist(), ("<u8", "<u4", "u1"), strict=True)
    ]
    return BandRows(*columns)


_INDEX_BYTES = NUM_BANDS * (EDGES + 1) * 4
_BAND_ROW_BYTES = 13
