"""The stage `ranges`, which cuts the segments of very large sources by ranges of the order.

Every shard reads a slice of each segment of its source, so the number of slices is segments x
shards, and the more slices there are, the shorter they are. At 100 TB a slice has a few documents,
whereas object storage is read in blocks of thousands of rows. So an item of this stage reads one of
R ranges of the order from R or more neighbouring segments, and writes it as one new segment, which
has about as many rows as one of them, or more. A shard then reads only the segments of its range.

The stage runs after dedup: the new segments lack the dropped documents, and their audit rows have
the final verdicts. They have no hashes and no signatures. No byte of the dataset depends on this
stage. Until the run ends, the segments take twice their space on disk.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.plan import DedupResult
from pipelines.execute.stage import Plan, Stage
from pipelines.merge.slices import find_documents, merged_rows, merged_texts, with_tokens
from pipelines.segments.bins import bins_table, holdout_table
from pipelines.segments.index import SegmentEntry, SegmentIndex, item_name, load_index
from pipelines.segments.segment import DedupCounts, with_suffix
from shards.manifest import WORK
from shards.merged import merge_slices
from shards.paths import check_stem
from shards.range import Range, split_range
from shards.storage.files import FileEntry, atomic_write, is_intact
from shards.storage.remote import AnyPath, RemotePath
from shards.storage.sparse import BLOCK_ROWS, concurrent_map
from shards.tables import column, with_hash_range, write_table

FOLDER = "ranges"

MAX_SHARD_SLICES = 10_000_000
"""The number of slices, segments x shards, of a source above which its segments are cut."""

FEW_SLICES, MIN_ROWS = 100_000, 1024
"""On object storage, which is read in whole blocks, segments are also cut if there are more than
FEW_SLICES slices with fewer than MIN_ROWS rows on average."""

PASS_WEIGHT = 2
"""The cost of a slice that this stage reads, relative to a slice that a shard reads. It takes twice
as many requests, because tokens are read in pieces."""

ROWS_PER_RANGE = 4_000_000
"""The approximate maximum number of rows in a new segment's .audit."""

BYTES_PER_RANGE = 1 << 30
"""The approximate maximum size of a new segment's .documents or .audit (the larger) in bytes."""

MAX_SEGMENTS = 1000
"""The maximum number of segments that an item reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeItem:
    """A range of the order in neighbouring segments of one source; it becomes one new segment."""

    name: str
    segment_index: str
    """The name of the segment index."""
    numbers: tuple[int, ...]
    """The numbers of the segments, in the order of identities."""
    index: int
    total: int
    """The item covers range `index` of `total` ranges of the order."""
    drops: tuple[str, ...]
    """References to the drop files that overlap the range."""

    def __str__(self) -> str:
        return (
            f"range {self.index} of {self.total} of {len(self.numbers)} segments "
            f"from number {self.numbers[0]} on"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRecord:
    """The segment that an item has written."""

    stem: str
    files: Mapping[str, FileEntry]
    """The files of the segment, by suffix."""

    def __post_init__(self) -> None:
        check_stem(self.stem, self.files)

    def is_intact(self, folder: AnyPath) -> bool:
        """Return whether the files are unchanged since they were written."""
        files = self.files.items()
        return all(
            is_intact(with_suffix(folder / self.stem, suffix), entry) for suffix, entry in files
        )


def choose_cut(segments: int, shards: int, *, rows: float, remote: bool) -> int:
    """Return the number of ranges to cut the segments of a source into; 1 leaves them uncut.

    Args:
        segments: The number of segments.
        shards: The number of shards; each reads every segment.
        rows: The number of rows in the .audit of all segments together.
        remote: Whether the segments are at a URL.
    """
    slices = segments * shards
    short = slices > FEW_SLICES and rows < MIN_ROWS * slices
    if slices <= MAX_SHARD_SLICES and not (remote and short):
        return 1
    bits = min((shards - 1).bit_length(), MAX_SEGMENTS.bit_length() - 1)
    cuts = (1 << bit for bit in range(bits + 1))
    return min(cuts, key=lambda cut: num_slices(segments, shards, cut))


def num_slices(segments: int, shards: int, cut: int) -> int:
    """Return the cost of a cut: the slices that cutting reads plus the slices that shards read."""
    # `cut` segments become one segment in each of `cut` ranges.
    read = PASS_WEIGHT * segments * cut if cut > 1 else 0
    return read + -(-segments // cut) * shards


def cut_into_ranges(
    index: SegmentIndex, output: AnyPath, *, shards: Mapping[str, int], dedup: DedupResult
) -> Plan[dict[str, SegmentIndex]]:
    """Yield the items, and return, by source, the index of the segments that its shards read.

    A source's index is `index`, or a new index of the segments that the items write, which lack the
    documents that dedup drops.

    Args:
        index: The segments that dedup read.
        output: The folder of the dataset.
        shards: The number of shards of each source.
        dedup: The results of dedup.
    """
    work = output / WORK
    indexes = dict.fromkeys(index.sources, index)
    items: dict[str, list[RangeItem]] = {}
    for source in index.sources:
        numbers = index.numbers(source)
        rows = sum(index.segments[number].rows for number in numbers)
        remote = isinstance(work, RemotePath)
        cut = choose_cut(len(numbers), shards[source], rows=rows, remote=remote)
        if cut > 1:
            items[source] = [
                _item(index, neighbours, dedup, place=place, total=cut)
                for neighbours in _neighbours(index, numbers, cut)
                for place in range(cut)
            ]
    if items:
        yield Stage(FOLDER, [*itertools.chain(*items.values())])
    for source, of_source in items.items():
        entries = tuple(_entry(index, item) for item in of_source)
        indexes[source] = replace(index, segments=entries)
        indexes[source].save(work)
    return indexes


def _neighbours(index: SegmentIndex, numbers: Sequence[int], cut: int) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of neighbouring segments, in groups within the limits of a new segment."""
    found: list[int] = []
    rows = size = 0
    for number in numbers:
        segment = index.segments[number]
        rows, size = rows + segment.rows, size + segment.table_bytes
        full = rows > ROWS_PER_RANGE * cut or size > BYTES_PER_RANGE * cut
        if found and (full or len(found) == MAX_SEGMENTS):
            yield tuple(found)
            found, rows, size = [], segment.rows, segment.table_bytes
        found.append(number)
    yield tuple(found)


def _item(
    index: SegmentIndex, numbers: tuple[int, ...], dedup: DedupResult, *, place: int, total: int
) -> RangeItem:
    drops = dedup.drops_within(Range.of(place, total))
    return RangeItem(
        name=item_name(FOLDER, index.name, numbers, place, total, drops),
        segment_index=index.name,
        numbers=numbers,
        index=place,
        total=total,
        drops=drops,
    )


def _entry(index: SegmentIndex, item: RangeItem) -> SegmentEntry:
    """Return the entry of the segment that an item writes, with counts from before dedup.

    The counts are an even share of the sums over the item's segments: the merge needs only the
    sum over a source.
    """
    segments = [index.segments[number] for number in item.numbers]

    def share(name: str) -> int:
        total: int = sum(getattr(segment, name) for segment in segments)
        return total * (item.index + 1) // item.total - total * item.index // item.total

    shared = ("rows", "documents", "tokens", "held_bytes", "table_bytes")
    return SegmentEntry(
        stem=item.name,
        source=segments[0].source,
        longest=max(segment.longest for segment in segments),
        rejects=sum(segment.rejects for segment in segments),
        dedup_counts=DedupCounts(),
        folder=FOLDER,
        index=item.index,
        total=item.total,
        **{name: share(name) for name in shared},
    )


def prepare_range(output: AnyPath) -> Callable[[RangeItem], RangeRecord]:
    """Return the function that runs the items of `ranges` for the dataset in `output`."""
    return partial(run_range, output)


def run_range(output: AnyPath, item: RangeItem) -> RangeRecord:
    """Write a range of neighbouring segments as one segment, and return its record."""
    work, within = output / WORK, Range.of(item.index, item.total)
    index = load_index(work, item.segment_index)
    segments = {number: index.segments[number] for number in item.numbers}
    stems = {number: segment.path(work) for number, segment in segments.items()}
    rejecting = {number: stems[number] for number in stems if segments[number].rejects}
    paths = [drop_path(work, name) for name in item.drops]
    drops = Drops.load(paths, within, segments=item.numbers)
    rows, held_bytes, tokens = (
        sum(getattr(segment, name) for segment in segments.values())
        for name in ("rows", "held_bytes", "tokens")
    )
    stem, dtype = work / FOLDER / item.name, np.dtype(index.dtype).newbyteorder("<")
    pieces = split_range(within, rows=rows, held_bytes=tokens * dtype.itemsize)
    files = _write_documents(stem, stems, within, drops=drops, pieces=pieces, dtype=dtype)
    pa.default_memory_pool().release_unused()
    parts = split_range(within, rows=rows, held_bytes=held_bytes)
    audit = (merged_rows(stems, "audit", part, drops=drops) for part in parts)
    tables = {"audit": (with_hash_range(part, within) for part in audit)}
    if index.texts:
        tables["texts"] = (merged_texts(stems, part) for part in parts)
    if rejecting:
        rejects = (merged_rows(rejecting, "rejects", part) for part in parts)
        tables["rejects"] = (with_hash_range(part, within) for part in rejects)
    for suffix, of_suffix in tables.items():
        files[suffix] = _write_blocks(with_suffix(stem, suffix), of_suffix)
    return RangeRecord(stem=item.name, files=files)


def _write_documents(
    stem: AnyPath,
    stems: Mapping[int, AnyPath],
    within: Range,
    *,
    drops: Drops,
    pieces: Sequence[Range],
    dtype: np.dtype[Any],
) -> dict[str, FileEntry]:
    """Write .documents, .tokens, .bins and .holdout without dropped documents; return the files.

    Args:
        stem: The stem of the new segment.
        stems: The stems of the segments by number, in the order of identities.
        within: The range.
        drops: The documents that dedup dropped in the range.
        pieces: The parts of the range; the tokens of a part are read at once.
        dtype: The type of a token.
    """
    found = concurrent_map(
        lambda place: find_documents(place[1], within, dropped=drops.rows(place[0]), holdout=0),
        stems.items(),
        where=stem,
    )
    tables = []
    with atomic_write(with_suffix(stem, "tokens")) as handle:
        for piece in pieces:
            parts = [
                (each, part.between(piece))
                for each, part in zip(stems.values(), found, strict=True)
            ]
            # Files without chosen tokens are not opened; if no file has any, one gives the types.
            read = [part for part in parts if len(part[1].starts)] or parts[:1]
            slices = concurrent_map(lambda part: with_tokens(*part), read, where=stem)
            documents, tokens = merge_slices(slices, dtype=dtype)
            tables.append(documents)
            for chunk in tokens:
                handle.write(chunk)
            del slices, tokens  # frees memory before the next piece is read
    del found  # frees memory before the tables are joined
    documents = pa.concat_tables(tables)
    order, holdout, lengths = (column(documents, name) for name in ("order", "holdout", "tokens"))
    written = {
        "documents": with_hash_range(documents, within),
        "bins": bins_table(order, lengths, within=within),
        "holdout": holdout_table(order, holdout),
    }
    files = {name: write_table(with_suffix(stem, name), written[name]) for name in written}
    return {"tokens": handle.entry, **files}


def _write_blocks(path: AnyPath, tables: Iterator[pa.Table]) -> FileEntry:
    """Write tables without dictionaries as one table, in blocks as write_table does."""
    rest = next(tables)
    with atomic_write(path) as handle, pa.ipc.new_file(handle, rest.schema) as writer:
        for table in tables:
            full = len(rest) // BLOCK_ROWS * BLOCK_ROWS
            writer.write_table(rest[:full].combine_chunks(), max_chunksize=BLOCK_ROWS)
            rest = pa.concat_tables([rest[full:], table])
        writer.write_table(rest.combine_chunks(), max_chunksize=BLOCK_ROWS)
    return handle.entry
