"""How many shards a source gets, and which of its documents are held out."""

from collections.abc import Sequence

import numpy as np

from pipelines.corpus.options import MAX_VALIDATION
from pipelines.merge.slices import find_held_out
from pipelines.segments.identity import hash_bound
from pipelines.segments.index import SegmentIndex
from pipelines.segments.segment import NUM_BINS, with_suffix
from shards.merged import min_shards
from shards.range import EVERYTHING
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import column, open_table

MIN_VALIDATION = 32

_BINS_AT_ONCE = 1000


def num_shards(plan: SegmentIndex, source: str, *, work: AnyPath, shard_tokens: int) -> int:
    """Return the least power of two of shards that keeps every shard within its tokens.

    Tokens are counted in the segments' bins, before dedup across segments drops documents. The
    limit is never below the longest document. Within a bin, tokens are assumed to be evenly spread.
    There are never so many shards that half as many would do for one document each: where the limit
    is about as long as a document, two neighbours may exceed it.

    Args:
        plan: The plan.
        source: The source.
        work: The folder of intermediate files.
        shard_tokens: Most tokens of a shard.
    """
    segments = [plan.segments[number] for number in plan.numbers(source)]
    documents = sum(segment.documents for segment in segments)
    if not documents:
        return 0
    limit = max([shard_tokens, *(segment.longest for segment in segments)])
    paths = [with_suffix(segment.path(work), "bins") for segment in segments]
    before = np.zeros(NUM_BINS + 1, np.int64)
    for start in range(0, len(paths), _BINS_AT_ONCE):
        part = paths[start : start + _BINS_AT_ONCE]
        for bins in concurrent_map(open_table, part, where=work):
            before += column(bins, "tokens")
    return min(min_shards(np.diff(before), limit), 1 << (documents - 1).bit_length())


def holdout_threshold(
    plan: SegmentIndex,
    source: str,
    *,
    work: AnyPath,
    drops: Sequence[AnyPath],
    dropped: int,
    fraction: float,
) -> int:
    """Return the holdout hash below which a source's surviving documents are validation.

    It holds out the fraction, but at least MIN_VALIDATION documents and at most the share
    MAX_VALIDATION of the survivors.

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
    survivors = sum(plan.segments[number].documents for number in stems) - dropped
    most = int(survivors * MAX_VALIDATION)
    if not most:
        return 0
    bound = hash_bound(fraction)
    # Twice as far as MIN_VALIDATION should need, so that one read is nearly always enough.
    reach = max(bound, min(2 * (MIN_VALIDATION + 1) * 2**64 // survivors, 2**64 - 1))
    while True:
        held_out = find_held_out(stems, reach, EVERYTHING, drops=drops).values()
        hashes = np.concatenate([np.zeros(0, np.uint64), *(part.hashes for part in held_out)])
        if len(hashes) > min(MIN_VALIDATION, most) or reach >= 2**64 - 1:
            break
        reach = min(reach * 2 + 1, 2**64 - 1)
    hashes = np.sort(hashes)
    share = int(np.searchsorted(hashes, np.uint64(bound)))
    wanted = min(max(share, MIN_VALIDATION), most)
    if wanted == share:
        return bound
    return int(hashes[wanted]) if wanted < len(hashes) else reach
