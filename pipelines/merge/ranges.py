"""Ranges: if a source has very many shards, its segments are cut by ranges of the order first.

Every shard reads a slice of each segment of its source, so the slices are as many as segments times
shards, and the more there are, the shorter they are: of a few documents at 100 TB, where a file
behind a URL is fetched in blocks of thousands. Instead an item reads one of R ranges of the order
from neighbouring segments, at least R of them, and writes it as one segment, which holds as many
rows as each of them did, or more. A shard then reads only the segments of its own range.

Dedup has decided before: the new segments lack the documents that it drops, and their audit has the
final verdicts. They have no hashes and no signatures. No byte of the dataset depends on it. Until
the run ends, what is cut takes twice its space.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.plan import Deduplicated
from pipelines.execute.stage import Plan, Stage
from pipelines.merge.slices import find_documents, merged_rows, merged_texts, with_tokens
from pipelines.segments.bins import bins_table, holdout_table
from pipelines.segments.index import PlannedSegment, SegmentIndex, item_name, load_index
from pipelines.segments.segment import SieveCounts, with_suffix
from shards.manifest import WORK
from shards.merged import merge_slices
from shards.paths import check_stem
from shards.range import Range, split_range
from shards.records import sealed
from shards.storage.files import FileEntry, atomic_write, intact, write_json
from shards.storage.remote import AnyPath, RemotePath
from shards.storage.sparse import BLOCK_ROWS, concurrent_map
from shards.tables import column, with_hash_range, write_table

FOLDER = "ranges"

MAX_SHARD_SLICES = 10_000_000
"""Segments x shards of a source; beyond this number the segments are cut."""

FEW_SLICES, MIN_ROWS = 100_000, 1024
"""Behind a URL, where a slice takes whole blocks of a table, segments are also cut if shards read
more slices than the first, which have fewer rows than the second on average."""

PASS_WEIGHT = 2
"""The cost of a slice that is cut: tokens are read in pieces, twice the requests of a shard's."""

ROWS_PER_RANGE = 4_000_000
"""Rows of .audit that a new segment has at most, about."""

BYTES_PER_RANGE = 1 << 30
"""Bytes of .documents or .audit, whichever is larger in each member, that it has at most, about."""

MAX_MEMBERS = 1000
"""Segments that an item reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeItem:
    """A range of the order of neighbouring segments of one source, which becomes one segment."""

    name: str
    plan: str
    numbers: tuple[int, ...]
    """The segments, in the order of identities."""
    index: int
    total: int
    """Which of how many ranges."""
    drops: tuple[str, ...]
    """References of the drop files that may name documents of the range."""

    def __str__(self) -> str:
        return (
            f"range {self.index} of {self.total} of {len(self.numbers)} segments "
            f"from number {self.numbers[0]} on"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRecord:
    """A segment that was written."""

    stem: str
    files: Mapping[str, FileEntry]
    """By suffix."""

    def __post_init__(self) -> None:
        check_stem(self.stem, self.files)

    def is_intact(self, folder: AnyPath) -> bool:
        """Return whether its files are as they were written."""
        files = self.files.items()
        return all(
            intact(with_suffix(folder / self.stem, suffix), entry) for suffix, entry in files
        )


def choose_cut(segments: int, shards: int, *, rows: float, remote: bool) -> int:
    """Return into how many ranges the segments of a source are cut; 1 for not at all.

    Args:
        segments: How many there are.
        shards: How many read each of them.
        rows: Rows of .audit of all segments.
        remote: They are behind a URL.
    """
    slices = segments * shards
    short = slices > FEW_SLICES and rows < MIN_ROWS * slices
    if slices <= MAX_SHARD_SLICES and not (remote and short):
        return 1
    bits = min((shards - 1).bit_length(), MAX_MEMBERS.bit_length() - 1)
    cuts = (1 << bit for bit in range(bits + 1))
    return min(cuts, key=lambda cut: num_slices(segments, shards, cut))


def num_slices(segments: int, shards: int, cut: int) -> int:
    """Return how many slices are read of segments cut this way, and of the ranges made of them."""
    # Of as many segments as there are ranges one is made in each range.
    read = PASS_WEIGHT * segments * cut if cut > 1 else 0
    return read + -(-segments // cut) * shards


def cut_into_ranges(
    plan: SegmentIndex, output: AnyPath, *, shards: Mapping[str, int], dedup: Deduplicated
) -> Plan[dict[str, SegmentIndex]]:
    """Yield the items, and return, by source, the saved plan from which its shards are merged.

    It is the plan itself, or a plan of the source's ranges, from which nothing is dropped any more.

    Args:
        plan: The segments that dedup read.
        output: The folder of the dataset.
        shards: How many shards each source gets.
        dedup: The results of dedup.
    """
    work = output / WORK
    plans = dict.fromkeys(plan.sources, plan)
    items: dict[str, list[RangeItem]] = {}
    for source in plan.sources:
        numbers = plan.numbers(source)
        rows = sum(plan.segments[number].rows for number in numbers)
        remote = isinstance(work, RemotePath)
        cut = choose_cut(len(numbers), shards[source], rows=rows, remote=remote)
        if cut > 1:
            items[source] = [
                _task(plan, run, dedup, index=index, total=cut)
                for run in _runs(plan, numbers, cut)
                for index in range(cut)
            ]
    if items:
        yield Stage(FOLDER, [*itertools.chain(*items.values())])
    for source, of_source in items.items():
        planned = (_planned(plan, item) for item in of_source)
        plans[source] = replace(plan, segments=tuple(planned))
        plans[source].save(work)
    return plans


def _runs(plan: SegmentIndex, numbers: Sequence[int], cut: int) -> Iterator[tuple[int, ...]]:
    """Yield segments in runs, each as long as its ranges allow."""
    run: list[int] = []
    rows = size = 0
    for number in numbers:
        segment = plan.segments[number]
        rows, size = rows + segment.rows, size + segment.table_bytes
        full = rows > ROWS_PER_RANGE * cut or size > BYTES_PER_RANGE * cut
        if run and (full or len(run) == MAX_MEMBERS):
            yield tuple(run)
            run, rows, size = [], segment.rows, segment.table_bytes
        run.append(number)
    yield tuple(run)


def _task(
    plan: SegmentIndex, numbers: tuple[int, ...], dedup: Deduplicated, *, index: int, total: int
) -> RangeItem:
    drops = dedup.drops_within(Range.of(index, total))
    return RangeItem(
        name=item_name(FOLDER, plan.name, numbers, index, total, drops),
        plan=plan.name,
        numbers=numbers,
        index=index,
        total=total,
        drops=drops,
    )


def _planned(plan: SegmentIndex, item: RangeItem) -> PlannedSegment:
    """Return the entries of a plan instead of segments: an even share of their sums.

    Merge only needs the sum over a source, as it was before dedup.
    """
    members = [plan.segments[number] for number in item.numbers]

    def share(name: str) -> int:
        total: int = sum(getattr(member, name) for member in members)
        return total * (item.index + 1) // item.total - total * item.index // item.total

    shared = ("rows", "documents", "tokens", "held_bytes", "table_bytes")
    return PlannedSegment(
        stem=item.name,
        source=members[0].source,
        longest=max(member.longest for member in members),
        rejects=sum(member.rejects for member in members),
        sieved=SieveCounts(),
        folder=FOLDER,
        index=item.index,
        total=item.total,
        **{name: share(name) for name in shared},
    )


def prepare_range(output: AnyPath) -> Callable[[RangeItem], None]:
    """Return the function that runs range items of the run in `output`."""
    return partial(run_range, output)


def run_range(output: AnyPath, item: RangeItem) -> None:
    """Write a range of segments as one segment, then the record."""
    work, within = output / WORK, Range.of(item.index, item.total)
    plan = load_index(work, item.plan)
    segments = {number: plan.segments[number] for number in item.numbers}
    stems = {number: segment.path(work) for number, segment in segments.items()}
    rejecting = {number: stems[number] for number in stems if segments[number].rejects}
    paths = [drop_path(work, name) for name in item.drops]
    drops = Drops.load(paths, within, segments=item.numbers)
    rows, held_bytes, tokens = (
        sum(getattr(segment, name) for segment in segments.values())
        for name in ("rows", "held_bytes", "tokens")
    )
    stem, dtype = work / FOLDER / item.name, np.dtype(plan.dtype).newbyteorder("<")
    pieces = split_range(within, rows=rows, held_bytes=tokens * dtype.itemsize)
    files = _write_documents(stem, stems, within, drops=drops, pieces=pieces, dtype=dtype)
    pa.default_memory_pool().release_unused()
    parts = split_range(within, rows=rows, held_bytes=held_bytes)
    audit = (merged_rows(stems, "audit", part, drops=drops) for part in parts)
    tables = {"audit": (with_hash_range(part, within) for part in audit)}
    if plan.texts:
        tables["texts"] = (merged_texts(stems, part) for part in parts)
    if rejecting:
        rejects = (merged_rows(rejecting, "rejects", part) for part in parts)
        tables["rejects"] = (with_hash_range(part, within) for part in rejects)
    for suffix, of_suffix in tables.items():
        files[suffix] = _write_blocks(with_suffix(stem, suffix), of_suffix)
    record = RangeRecord(stem=item.name, files=files)
    write_json(work / FOLDER / f"{item.name}.json", sealed(record))


def _write_documents(
    stem: AnyPath,
    stems: Mapping[int, AnyPath],
    within: Range,
    *,
    drops: Drops,
    pieces: Sequence[Range],
    dtype: np.dtype[Any],
) -> dict[str, FileEntry]:
    """Write the documents that are not dropped and what belongs to them, and return the files.

    Args:
        stem: The stem of the new segment.
        stems: Those of the segments by number, in the order of identities.
        within: The range.
        drops: The documents that dedup dropped in the range.
        pieces: The range in parts, whose tokens are read at once.
        dtype: Type of a token.
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
            # Files of tokens from which nothing is taken are not opened; one says the types.
            read = [part for part in parts if len(part[1].starts)] or parts[:1]
            slices = concurrent_map(lambda part: with_tokens(*part), read, where=stem)
            documents, tokens = merge_slices(slices, dtype=dtype)
            tables.append(documents)
            for chunk in tokens:
                handle.write(chunk)
            del slices, tokens  # before the next piece is fetched
    del found  # before the whole is put together
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
    """Write tables without dictionaries as one, in blocks as write_table does."""
    rest = next(tables)
    with atomic_write(path) as handle, pa.ipc.new_file(handle, rest.schema) as writer:
        for table in tables:
            full = len(rest) // BLOCK_ROWS * BLOCK_ROWS
            writer.write_table(rest[:full].combine_chunks(), max_chunksize=BLOCK_ROWS)
            rest = pa.concat_tables([rest[full:], table])
        writer.write_table(rest.combine_chunks(), max_chunksize=BLOCK_ROWS)
    return handle.entry
