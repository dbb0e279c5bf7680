"""Searches the signature tables of previous generations for new hashes, without reading a text.

    text hash  ─▶  exact tables  ─▶  found: dropped; if the text was erased, no copy is kept
    band hash  ─▶  band tables   ─▶  found: the smallest document that has it  ─▶  candidates
    candidates, by the order of that document  ─▶  slots tables  ─▶  similar enough: dropped

A hash is in the tables of only the first generation that has it. An item keeps the rows that match
its own hashes, at most one per hash, and reads the tables block by block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import PAIRS_AT_ONCE, are_similar
from pipelines.dedup.exact import BLOCK_ROWS, SIGNATURES, run_starts
from pipelines.dedup.minhash import NUM_SLOTS
from pipelines.dedup.near import DocumentRefs, look_up
from pipelines.dedup.signatures import BAND_SIGNATURES, SLOT_SIGNATURES
from pipelines.segments.index import PreviousGeneration
from pipelines.segments.matches import matching_rows
from shards.range import FULL_RANGE, Range
from shards.storage.arrow import reraise_as_damage
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import column, open_between, slice_between
from shards.text_hash import ERASED_ORDER

CANDIDATES = pa.schema(
    [
        ("order", pa.uint64()),
        ("generation", pa.uint32()),
        ("segment", pa.uint32()),
        ("slot_row", pa.uint32()),
    ]
)
"""The columns of a file of candidates, which is sorted by all columns. A row gives the segment and
slot_row of a new document, and the order and generation (its place in the segment index) of the
earlier document to compare it with."""

Generations = Sequence[PreviousGeneration]

CANDIDATES_AT_ONCE = 2_000_000
"""The number of candidates that are compared at once, which takes 0.2 GB."""


@dataclass(frozen=True, slots=True)
class SeenHashes:
    """Hashes of a band that previous generations have, sorted, as columns of equal length.

    `hash` is uint64[n]. `order` (uint64[n]) is the order of the smallest document with the hash,
    and `generation` (uint32[n]) is the place of that document's generation in the segment index.
    """

    hash: np.ndarray
    order: np.ndarray
    generation: np.ndarray

    def places(self, hashes: np.ndarray) -> np.ndarray:
        """Return the row (int32[n]) of each hash in these columns; -1 if the hash is missing."""
        places = np.full(len(hashes), -1, np.int32)
        if len(self.hash):
            for start in range(0, len(hashes), BLOCK_ROWS):
                part = hashes[start : start + BLOCK_ROWS]
                at = np.minimum(np.searchsorted(self.hash, part), len(self.hash) - 1)
                places[start : start + len(part)] = np.where(self.hash[at] == part, at, -1)
        return places


class _Table(NamedTuple):
    """A signature table of a previous generation."""

    generation: int
    path: AnyPath
    within: Range


def _tables(output: AnyPath, groups: Sequence[Sequence[str]], within: Range) -> list[_Table]:
    """Return the tables that overlap a range, given their paths by generation."""
    return [
        _Table(number, output / path, of_table)
        for number, paths in enumerate(groups)
        for index, path in enumerate(paths)
        if (of_table := Range.of(index, len(paths))).overlaps(within)
    ]


def _matches(
    tables: Sequence[_Table], key: str, values: np.ndarray, *, schema: pa.Schema
) -> list[pa.Table]:
    """Return the rows of each table whose key is in `values` (uint64[n], in any order).

    Raises:
        DamageError: A table lacks the columns of the schema, or cannot be read.
    """
    if not tables:
        return []
    values = np.sort(values)
    values = values[run_starts(values)] if len(values) else values

    def read(table: _Table) -> pa.Table:
        wanted = values[slice_between(values, table.within.low, table.within.high)]
        found = matching_rows(table.path, key, wanted, within=table.within)
        with reraise_as_damage(table.path, kind="a table of signatures"):
            if not found.schema.equals(schema) or any(each.null_count for each in found.columns):
                raise ValueError(f"its columns are not {schema.names}")
        return found

    return concurrent_map(read, tables, where=tables[0].path)


def seen_texts(
    output: AnyPath, previous: Generations, within: Range, *, high: np.ndarray, low: np.ndarray
) -> np.ndarray:
    """Return the mask (bool[n]) of the text hashes that a previous generation has.

    Args:
        output: The folder of the dataset.
        previous: The previous generations.
        within: The range of `high`.
        high: uint64[n], the first half of each hash.
        low: uint64[n], the second half.
    """
    return _are_among(_texts_found(output, previous, within, high), high, low)


def erased_texts(
    output: AnyPath, previous: Generations, *, high: np.ndarray, low: np.ndarray
) -> np.ndarray:
    """Return the mask (bool[n]) of the hashes of texts that were erased from the dataset.

    Args:
        output: The folder of the dataset.
        previous: The previous generations.
        high: uint64[n], the first half of each hash.
        low: uint64[n], the second half.
    """
    with_erased = [generation for generation in previous if generation.has_erased]
    found = _texts_found(output, with_erased, FULL_RANGE, high)
    return _are_among(found.filter(pa.array(column(found, "order") == ERASED_ORDER)), high, low)


def _texts_found(
    output: AnyPath, previous: Generations, within: Range, high: np.ndarray
) -> pa.Table:
    """Return the rows of the exact tables whose first half of the hash is in `high`."""
    tables = _tables(output, [generation.exact for generation in previous], within)
    matches = _matches(tables, "hash_high", high, schema=SIGNATURES)
    return pa.concat_tables([SIGNATURES.empty_table(), *matches])


def _are_among(found: pa.Table, high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return the mask (bool[n]) of the text hashes that are in a table of SIGNATURES."""
    among = np.zeros(len(high), bool)
    if not len(found):
        return among
    high_found, low_found = column(found, "hash_high"), column(found, "hash_low")
    ranked = np.lexsort((low_found, high_found))
    high_found, low_found = high_found[ranked], low_found[ranked]
    starts = np.flatnonzero(run_starts(high_found))
    longest = int(np.diff(starts, append=len(high_found)).max())
    for start in range(0, len(high), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        first = np.searchsorted(high_found, high[part])
        for step in range(longest):  # several hashes may have the same first half
            at = np.minimum(first + step, len(high_found) - 1)
            among[part] |= (high_found[at] == high[part]) & (low_found[at] == low[part])
    return among


def seen_hashes(
    output: AnyPath, previous: Generations, band: int, within: Range, *, hashes: np.ndarray
) -> SeenHashes:
    """Return the hashes of a band, among `hashes`, that a previous generation has.

    Args:
        output: The folder of the dataset.
        previous: The previous generations.
        band: The number of the band.
        within: The range of the hashes.
        hashes: The hashes to look up, uint64[n].
    """
    # A generation without documents has no tables.
    of_band = [generation.bands[band : band + 1] for generation in previous]
    tables = _tables(output, [paths[0] if paths else () for paths in of_band], within)
    parts = _matches(tables, "hash", hashes, schema=BAND_SIGNATURES)
    found = pa.concat_tables([BAND_SIGNATURES.empty_table(), *parts])
    numbers = np.array([table.generation for table in tables], np.uint32)
    generation = np.repeat(numbers, [len(part) for part in parts])
    values, order = column(found, "hash"), column(found, "order")
    ranked = np.argsort(values)
    return SeenHashes(values[ranked], order[ranked], generation[ranked])


def candidate_table(
    seen: SeenHashes, places: np.ndarray, segment: np.ndarray, slot_row: np.ndarray
) -> pa.Table:
    """Return documents as CANDIDATES, each with an earlier document to compare it with.

    Args:
        seen: Hashes of previous generations.
        places: int[n], the row of each document's hash in `seen`.
        segment: uint32[n], the documents' segments.
        slot_row: uint32[n], the documents' rows in .slots.
    """
    columns = [seen.order[places], seen.generation[places], segment, slot_row]
    ranked = np.lexsort(columns[::-1])
    return pa.table([values[ranked] for values in columns], schema=CANDIDATES)


def previous_pairs(paths: Sequence[AnyPath], within: Range) -> Iterator["PreviousPairs"]:
    """Yield the pairs of candidates in a range of the earlier documents' order.

    If there are many candidates, they are yielded in parts, because one earlier document, such as a
    page with a million versions, may have a million candidates.

    Args:
        paths: The files of candidates.
        within: The range.
    """
    parts = concurrent_map(
        lambda path: open_between(path, "order", low=within.low, high=within.high),
        paths,
        where=paths[0],
    )
    num = 1 + sum(map(len, parts)) // CANDIDATES_AT_ONCE
    for index in range(num):
        chosen = [
            part.filter(pa.array(column(part, "slot_row") % num == index)) if num > 1 else part
            for part in parts
        ]
        yield PreviousPairs(pa.concat_tables(chosen))


class PreviousPairs:
    """Pairs of a new document and a document of a previous generation, each pair once."""

    def __init__(self, table: pa.Table) -> None:
        """Join the CANDIDATES of all bands; the rows may be in any order."""
        names = ("generation", "order", "segment", "slot_row")
        columns = [column(table, name) for name in names]
        ranked = np.lexsort(columns[::-1])
        columns = [values[ranked] for values in columns]
        first = run_starts(*columns)
        starts = np.flatnonzero(first)
        self.bands = np.diff(starts, append=len(first))
        """int[n]: the number of bands that each pair shares."""
        self._generation, self._order, self._segment, self._slot_row = (
            values[starts] for values in columns
        )

    def similar(
        self,
        output: AnyPath,
        previous: Generations,
        slots: Sequence[AnyPath],
        *,
        threshold: float,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of the pairs, each with the mask (bool[n]) of the similar pairs.

        Args:
            output: The folder of the dataset.
            previous: The previous generations.
            slots: The .slots files of all segments.
            threshold: The minimum similarity.
        """
        for start in range(0, len(self._order), PAIRS_AT_ONCE):
            part = slice(start, min(start + PAIRS_AT_ONCE, len(self._order)))
            new = look_up(
                slots, "slots", segment=self._segment[part], slot_row=self._slot_row[part]
            )
            which, earlier = self._previous_slots(output, previous, part)
            passed = np.zeros(len(new), bool)
            passed[which[are_similar(new[which], earlier, threshold=threshold)]] = True
            yield part, passed

    def documents(self, slots: Sequence[AnyPath], part: slice, chosen: np.ndarray) -> DocumentRefs:
        """Return the new documents of chosen pairs (bool[n]) of a slice."""
        segment, slot_row = self._segment[part][chosen], self._slot_row[part][chosen]
        order = look_up(slots, "order", segment=segment, slot_row=slot_row)
        return DocumentRefs(order, segment, slot_row)

    def _previous_slots(
        self, output: AnyPath, previous: Generations, part: slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the slots (uint8[m, …]) of the earlier documents, and their pairs (int64[m]).

        A pair has no slots if the earlier document was removed but an exact duplicate of it stayed:
        then the duplicate's bands count as new, but its slots are not kept (see `slot_table`). A
        pair has several slots if a changed file was read again (--allow-changed) and both
        generations were compacted into one, since the old and the new record at a place have the
        same order.
        """
        generation, order = self._generation[part], self._order[part]
        which, slots = [np.zeros(0, np.int64)], [np.zeros((0, NUM_SLOTS), np.uint8)]
        for number in np.unique(generation).tolist():
            rows = np.flatnonzero(generation == number)
            at, values = _slots_of(output, previous[number], order[rows])
            which.append(rows[at])
            slots.append(values)
        return np.concatenate(which), np.concatenate(slots)


def _slots_of(
    output: AnyPath, generation: PreviousGeneration, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the slots (uint8[m, …]) of a generation's documents, and their places in `order`."""
    within = Range(low=int(order.min()), high=int(order.max()) + 1)
    tables = _tables(output, [generation.slots], within)
    found = _matches(tables, "order", order, schema=SLOT_SIGNATURES)
    table = pa.concat_tables([SLOT_SIGNATURES.empty_table(), *found])
    orders = column(table, "order")
    first, last = (np.searchsorted(orders, order, side) for side in ("left", "right"))
    counts = last - first
    which = np.repeat(np.arange(len(order)), counts)
    at = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + first[which]
    values = table["slots"].combine_chunks()
    rows = np.frombuffer(values.buffers()[1] or b"", np.uint8)[values.offset * NUM_SLOTS :]
    return which, rows.reshape(-1, NUM_SLOTS)[at]
