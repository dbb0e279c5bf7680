"""The tables that a dataset keeps for the dedup of later generations, besides those of exact.py.

    band-BB-NNNNN.arrow   range NNNNN of the hash of band BB: hash, order; sorted by hash
    slots-NNNNN.arrow     range NNNNN of the order: order, slots; sorted by order

A band's tables have every hash that no earlier generation has, with the order of the smallest
document that has this hash, whether that document is kept or not. The slots tables have the slots
of all documents that the band tables may name.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import BandRows, read_slots, slot_rows_between
from pipelines.dedup.drops import EXACT, Drops
from pipelines.dedup.minhash import NUM_SLOTS
from shards.range import Range
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import with_hash_range

BAND_SIGNATURES = pa.schema([("hash", pa.uint64()), ("order", pa.uint64())])

SLOT_SIGNATURES = pa.schema([("order", pa.uint64()), ("slots", pa.binary(NUM_SLOTS))])


def band_table(rows: BandRows, smallest: np.ndarray, *, within: Range) -> pa.Table:
    """Return the signatures of a range of a band.

    Args:
        rows: The rows of the range.
        smallest: bool[n], whether a row's document is the smallest one with the row's hash.
        within: The range.
    """
    hashes, order = rows.hash[smallest], rows.order[smallest]
    ranked = np.argsort(hashes)
    table = pa.table([hashes[ranked], order[ranked]], schema=BAND_SIGNATURES)
    return with_hash_range(table, within)


def slot_table(slots: Sequence[AnyPath], drops: Drops, within: Range) -> pa.Table:
    """Return the slots of the signed documents in a range, except exact duplicates.

    No band table names an exact duplicate: the document that it repeats is smaller and has the same
    hashes.

    Args:
        slots: The .slots files of all segments.
        drops: The documents that dedup drops in the range.
        within: The range.
    """

    def read(number: int) -> tuple[np.ndarray, np.ndarray]:
        rows, order = slot_rows_between(slots[number], low=within.low, high=within.high)
        mine = ~np.isin(order, drops.orders(number)[EXACT])
        return order[mine], read_slots(slots[number], "slots", rows[mine])

    parts = concurrent_map(read, range(len(slots)), where=slots[0])
    order = np.concatenate([part for part, _ in parts])
    values = np.concatenate([part for _, part in parts])
    del parts
    ranked = np.argsort(order, kind="stable")  # of equal orders the first segment's comes first
    buffer = pa.py_buffer(np.ascontiguousarray(values[ranked]))
    column_of_slots = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(NUM_SLOTS), len(ranked), [None, buffer]
    )
    table = pa.table([order[ranked], column_of_slots], schema=SLOT_SIGNATURES)
    return with_hash_range(table, within)
