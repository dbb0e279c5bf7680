"""Forms packs, which are runs of small neighbouring files that are processed together.

The overhead of an item takes as long as a few dozen pages of text, because the notes, segments and
record of the item are files, and each file is synced to disk. So small files of a source with
neighbouring paths share an item, and their records share batches. Which files share an item does
not affect any byte of the dataset.

The hash of a file's path and the file's size determine whether a pack ends with the file. So the
packs of a folder do not depend on the process that forms them, and a file that is added, removed or
extended changes its own pack but not the later ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from pipelines.read.split import FileSplit

SMALL_BYTES = 1 << 20
"""The size from which a file is a separate item: its text takes far longer than the overhead of an
item."""

PACK_FILES = 256
"""The average number of files in a pack: large enough that each file's share of an item's overhead
is small, and small enough that workers can share a few thousand files and that little is done again
after a kill."""

PACK_BYTES = 8 << 20
"""The average number of bytes in a pack; fewer if --split-bytes sets shorter items."""

_MOST = 4
"""The maximum size of a pack, as a multiple of the average; it cuts about one pack in fifty."""


def packs(
    chains: Iterable[Sequence[FileSplit]], *, split_bytes: int
) -> Iterator[tuple[FileSplit, ...]]:
    """Yield the splits of each item: a single split, or a pack of files that are one split each.

    Args:
        chains: The splits of each file, with files sorted by source and path.
        split_bytes: The number of bytes that an item should contain.
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
    """Return whether a file ends a pack; this is pseudo-random, and likelier for larger files."""
    digest = blake2b(split.relative.encode(), digest_size=8).digest()
    chance = 1 / PACK_FILES + split.file_bytes / pack_bytes
    return int.from_bytes(digest, "little") < chance * 2**64
