"""Chooses which documents of a source are held out."""

from collections.abc import Sequence

import numpy as np

from pipelines.corpus.options import MAX_VALIDATION
from pipelines.merge.slices import find_held_out
from pipelines.segments.identity import hash_bound
from pipelines.segments.index import SegmentIndex
from shards.range import FULL_RANGE
from shards.storage.remote import AnyPath

MIN_VALIDATION = 32


def holdout_threshold(
    index: SegmentIndex,
    source: str,
    *,
    work: AnyPath,
    drops: Sequence[AnyPath],
    dropped: int,
    fraction: float,
) -> int:
    """Return the holdout hash below which a source's documents, after dedup, are held out.

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
    # This is twice the threshold that MIN_VALIDATION should need, so one read is usually enough.
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
