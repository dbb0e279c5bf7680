"""How many shards a source gets, and which of its documents are held out."""

from collections.abc import Sequence

import numpy as np

from pipelines.corpus.options import MOST_VALIDATION
from pipelines.merge.merge import held_out
from pipelines.segments.identity import below
from pipelines.segments.plan import Plan
from pipelines.segments.range import EVERYTHING
from pipelines.segments.segment import NUM_BINS, with_suffix
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import column, open_table
from shards.storage.remote import AnyPath

LEAST_VALIDATION = 32

_BINS_AT_ONCE = 1000


def num_shards(plan: Plan, source: str, *, work: AnyPath, shard_tokens: int) -> int:
    """Return the least power of two of shards that keeps every shard within so many tokens.

    Counted in the segments' bins, before dedup across segments takes documents away. A shard that
    holds a single longer document is let be, and so are bins that are themselves too large.
    """
    chosen = [plan.segments[at] for at in plan.numbers(source)]
    if not sum(each.documents for each in chosen):
        return 0
    limit = max([shard_tokens, *(each.longest for each in chosen)])
    paths = [with_suffix(each.path(work), "bins") for each in chosen]
    before = np.zeros(NUM_BINS + 1, np.int64)
    for at in range(0, len(paths), _BINS_AT_ONCE):
        part = paths[at : at + _BINS_AT_ONCE]
        for bins in side_by_side(open_table, part, where=work):
            before += column(bins, "tokens")
    shards, fullest = 1, int(before[-1])
    while shards < NUM_BINS and fullest > limit:
        shards *= 2
        fullest = int(np.diff(before[:: NUM_BINS // shards]).max())
    # Finer than the bins: as if the fullest bin were even.
    return shards << ((fullest - 1) // limit).bit_length()


def holdout_threshold(
    plan: Plan,
    source: str,
    *,
    work: AnyPath,
    drops: Sequence[AnyPath],
    dropped: int,
    fraction: float,
) -> int:
    """Return the holdout hash below which a source's surviving documents are validation.

    It holds out the given fraction, at least LEAST_VALIDATION documents, at most MOST_VALIDATION of
    them.

    Args:
        plan: The plan.
        source: The source.
        work: The folder of intermediate files.
        drops: The drop files.
        dropped: How many of the source's documents they drop.
        fraction: The share to hold out; 0 for none.
    """
    if not fraction:
        return 0
    stems = plan.stems(work, source)
    survivors = sum(plan.segments[at].documents for at in stems) - dropped
    most = int(survivors * MOST_VALIDATION)
    if not most:
        return 0
    # Twice as far as the least number should reach, lest everything be read again.
    reach = max(below(fraction), min(2 * (LEAST_VALIDATION + 1) * 2**64 // survivors, 2**64 - 1))
    while True:
        found = held_out(stems, reach, EVERYTHING, drops=drops).values()
        held = np.sort(np.concatenate([np.zeros(0, np.uint64), *(each.hashes for each in found)]))
        if len(held) > min(LEAST_VALIDATION, most) or reach >= 2**64 - 1:
            break
        reach = min(reach * 2 + 1, 2**64 - 1)
    share = int(np.searchsorted(held, np.uint64(below(fraction))))
    wanted = min(max(share, LEAST_VALIDATION), most)
    if wanted == share:
        return below(fraction)
    return int(held[wanted]) if wanted < len(held) else reach
