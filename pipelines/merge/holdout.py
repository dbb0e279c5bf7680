"""Chooses the number of shards of a source, and which of its documents are held out."""

from collections.abc import Sequence

import numpy as np

from pipelines.corpus.options import MAX_VALIDATION
from pipelines.merge.slices import find_held_out
from pipelines.segments.identity import hash_bound
from pipelines.segments.index import SegmentIndex
from pipelines.segments.segment import NUM_BINS, with_suffix
from shards.merged import min_shards
from shards.range import FULL_RANGE
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import column, open_table

MIN_VALIDATION = 32

_BINS_AT_ONCE = 1000


def num_shards(index: SegmentIndex, source: str, *, work: AnyPath, shard_tokens: int) -> int:
    """Return the smallest power of two of shards that keeps every shard within its tokens.

    Tokens are counted in the segments' bins, before dedup across segments drops documents. Within a
    bin, tokens are assumed to be evenly spread. The limit is never below the longest document.
    There are fewer than two shards per document; so if the limit is about as long as a document, a
    shard with two documents may exceed it.

    Args:
        index: The segments.
        source: The source.
        work: The folder of intermediate files.
        shard_tokens: The maximum number of tokens of a shard.
    """
    segments = [index.segments[number] for number in index.numbers(source)]
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
    index: SegmentIndex,
    source: str,
    *,
    work: AnyPath,
    drops: Sequence[AnyPath],
    dropped: int,
    fraction: float,
) -> int:
    """Return the holdout hash below which a source's documents become validation after dedup.

    The threshold holds out a fraction of the documents that dedup keeps, but at least
    MIN_VALIDATION documents and at most the share MAX_VALIDATION.

    Args:
        index: The segments.
        source: The source.
        work: The folder of intermediate files.
        drops: The drop files.
        dropped: The number of the source's documents that dedup drops.
        fraction: The share to hold out; 0 for none.
    """
    if not fraction:
        return 0
    stems = index.stems(work, source)
    survivors = sum(index.segments[number].documents for number in stems) - dropped
    most = int(survivors * MAX_VALIDATION)
    if not most:
        return 0
    bound = hash_bound(fraction)
    # Twice the threshold that MIN_VALIDATION should need: one read is nearly always enough.
    reach = max(bound, min(2 * (MIN_VALIDATION + 1) * 2**64 // survivors, 2**64 - 1))
    while True:
        held_out = find_held_out(stems, reach, FULL_RANGE, drops=drops).values()
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
