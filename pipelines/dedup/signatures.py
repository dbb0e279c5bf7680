"""The tables that a dataset keeps for the dedup of later generations, besides those of exact.py.

    band-BB-NNNNN.arrow   range NNNNN of the hash of band BB: hash, order     by hash
    slots-NNNNN.arrow     range NNNNN of the order: order, slots              by order

A band's tables have every hash that no earlier generation has, with the order of the smallest
document that has it, whether that document is kept or not. The slots are those of all documents
that may be named there.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import BandRows, read_slots, signers_between
from pipelines.dedup.drops import EXACT, Drops
from pipelines.dedup.minhash import NUM_SLOTS
from shards.range import Range
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import with_hash_range

BAND_SIGNATURES = pa.schema([("hash", pa.uint64()), ("order", pa.uint64())])

SLOT_SIGNATURES = pa.schema([("order", pa.uint64()), ("slots", pa.binary(NUM_SLOTS))])


def band_table(rows: BandRows, owners: np.ndarray, *, within: Range) -> pa.Table:
    """Return the signatures of a range of a band.

    Args:
        rows: The rows of the range.
        owners: bool[n], the rows of the smallest documents with their hashes.
        within: The range.
    """
    hashes, order = rows.hash[owners], rows.order[owners]
    ranked = np.argsort(hashes)
    table = pa.table([hashes[ranked], order[ranked]], schema=BAND_SIGNATURES)
    return with_hash_range(table, within)


def slot_table(slots: Sequence[AnyPath], drops: Drops, within: Range) -> pa.Table:
    """Return the slots of the signers in a range of the order, without those that equal others.

    A document whose text another has, here or in an earlier generation, is the smallest with none
    of its hashes.

    Args:
        slots: The .slots files of all segments.
        drops: The documents that dedup drops in the range.
        within: The range.
    """

    def read(number: int) -> tuple[np.ndarray, np.ndarray]:
        signers, order = signers_between(slots[number], low=within.low, high=within.high)
        mine = ~np.isin(order, drops.orders(number)[EXACT])
        return order[mine], read_slots(slots[number], "slots", signers[mine])

    parts = concurrent_map(read, range(len(slots)), where=slots[0])
    order = np.concatenate([part for part, _ in parts])
    rows = np.concatenate([part for _, part in parts])
    del parts
    ranked = np.argsort(order, kind="stable")  # of equal orders the first segment's comes first
    values = pa.py_buffer(np.ascontiguousarray(rows[ranked]))
    column_of_slots = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(NUM_SLOTS), len(ranked), [None, values]
    )
    table = pa.table([order[ranked], column_of_slots], schema=SLOT_SIGNATURES)
    return with_hash_range(table, within)
