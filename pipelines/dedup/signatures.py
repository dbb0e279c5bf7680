"""What a dataset keeps for the dedup of later generations, besides the text hashes of exact.py.

    band-BB-NNNNN.arrow   range NNNNN of the hash of band BB: hash, order     by hash
    slots-NNNNN.arrow     range NNNNN of the order: order, slots              by order

A band's tables have every hash that no earlier generation has, with the order of the smallest
document that has it, whether that document is kept or not. The slots are those of these documents.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import BandRows, read_slots, signers_between
from pipelines.dedup.minhash import NUM_SLOTS
from pipelines.dedup.near import look_up, segments_of
from pipelines.dedup.runs import run_starts
from pipelines.segments.range import Range
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import column, open_between
from shards.storage.remote import AnyPath

BAND_SIGNATURES = pa.schema([("hash", pa.uint64()), ("order", pa.uint64())])

SLOT_SIGNATURES = pa.schema([("order", pa.uint64()), ("slots", pa.binary(NUM_SLOTS))])


def band_table(
    rows: BandRows, starts: np.ndarray, owners: np.ndarray, *, slots: Sequence[AnyPath]
) -> pa.Table:
    """Return the signatures of a range of a band.

    Args:
        rows: The rows of the range.
        starts: Where each segment's rows begin.
        owners: bool[n], the rows of the smallest documents with their hashes.
        slots: The .slots files of all segments.
    """
    chosen = np.flatnonzero(owners)
    segment = segments_of(chosen, starts)
    order = look_up(slots, "order", segment=segment, signer=rows.signer[chosen])
    hashes = rows.hash[chosen]
    del chosen, segment
    ranked = np.argsort(hashes)
    return pa.table([hashes[ranked], order[ranked]], schema=BAND_SIGNATURES)


def owner_table(bands: pa.Table) -> pa.Table:
    """Return the orders of a range of a band's signatures, sorted: a file of owners."""
    return pa.table({"order": np.sort(column(bands, "order"))})


def owner_path(work: AnyPath, reference: str) -> AnyPath:
    """Return the path of a file of owners."""
    return work / f"{reference}.owners"


def slot_table(owners: Sequence[AnyPath], slots: Sequence[AnyPath], within: Range) -> pa.Table:
    """Return the slots of all owners in a range of the order.

    Args:
        owners: The files of owners.
        slots: The .slots files of all segments.
        within: The range.
    """
    orders = _distinct_orders(owners, within)

    def read(path: AnyPath) -> tuple[np.ndarray, np.ndarray]:
        signers, order = signers_between(path, low=within.low, high=within.high)
        mine = np.isin(order, orders)
        return order[mine], read_slots(path, "slots", signers[mine])

    parts = side_by_side(read, slots, where=slots[0])
    order = np.concatenate([part for part, _ in parts])
    rows = np.concatenate([part for _, part in parts])
    del parts
    ranked = np.argsort(order, kind="stable")  # of equal orders the first segment's comes first
    values = pa.py_buffer(np.ascontiguousarray(rows[ranked]))
    column_of_slots = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(NUM_SLOTS), len(ranked), [None, values]
    )
    return pa.table([order[ranked], column_of_slots], schema=SLOT_SIGNATURES)


def _distinct_orders(owners: Sequence[AnyPath], within: Range) -> np.ndarray:
    parts = side_by_side(
        lambda path: column(
            open_between(path, "order", low=within.low, high=within.high), "order"
        ).copy(),
        owners,
        where=owners[0],
    )
    orders = np.sort(np.concatenate(parts))
    distinct: np.ndarray = orders[run_starts(orders)] if len(orders) else orders
    return distinct
