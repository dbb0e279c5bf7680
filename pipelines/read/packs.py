"""Small files are mapped many at a time: a pack is a run of small files that are neighbours.

An item costs as much as some dozen pages of text, whatever it maps: notes, segments and a record
are files, each of them synced to the disk. So small files of a source that follow one another by
path share an item, and their records share batches. No byte of a dataset depends on which files do.

Where a pack ends is decided file by file, by the hash of its path and by its size. So the packs of
a folder are the same whoever cuts it, and a file that comes, goes or grows changes the pack that it
is in, not those behind it.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from pipelines.read.split import FileSplit

SMALL_BYTES = 1 << 20
"""A file of at least this size is mapped by itself: its text takes far longer than an item."""

PACK_FILES = 256
"""Files of a pack, on average: enough that an item costs little for each of them, and so few that
workers share some thousand files, and that little is mapped again after a kill."""

PACK_BYTES = 8 << 20
"""Bytes of a pack, on average; fewer where --split-bytes asks for shorter items."""

_MOST = 4
"""How many times as large as on average a pack may become; one in fifty would be larger."""


def packs(
    chains: Iterable[Sequence[FileSplit]], *, split_bytes: int
) -> Iterator[tuple[FileSplit, ...]]:
    """Yield the splits of each item: single ones, and packs of files that are one split each.

    Args:
        chains: The splits of each file, files by source and path.
        split_bytes: Bytes that an item is to map.
    """
    pack: list[FileSplit] = []
    size = 0
    most = min(PACK_BYTES, split_bytes)
    for chain in chains:
        first = chain[0]
        is_small = len(chain) == 1 and first.file_bytes < SMALL_BYTES
        if pack and (not is_small or first.source != pack[0].source):
            yield tuple(pack)
            pack, size = [], 0
        if not is_small:
            yield from ((split,) for split in chain)
            continue
        pack.append(first)
        size += first.file_bytes
        full = len(pack) >= _MOST * PACK_FILES or size >= _MOST * most
        if full or _ends_pack(first, pack_bytes=most):
            yield tuple(pack)
            pack, size = [], 0
    if pack:
        yield tuple(pack)


def _ends_pack(split: FileSplit, *, pack_bytes: int) -> bool:
    """Return whether a pack ends with a file: by chance, the more likely the larger it is."""
    digest = blake2b(split.relative.encode(), digest_size=8).digest()
    chance = 1 / PACK_FILES + split.file_bytes / pack_bytes
    return int.from_bytes(digest, "little") < chance * 2**64
