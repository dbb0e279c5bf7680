"""Searches the signature tables of earlier generations for the new hashes, without a text.

    text hash  ─▶  exact tables  ─▶  known: dropped; of an erased text: no copy of it is kept
    band hash  ─▶  band tables   ─▶  the smallest document that has it  ─▶  candidates
    candidates, by the order of that document  ─▶  slots tables  ─▶  similar enough: dropped

A hash is in the tables of the first generation that has it and in no other. An item takes what it
finds for its own hashes, at most a row for each; of the tables it holds one piece at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import PAIRS_AT_ONCE, are_similar
from pipelines.dedup.exact import BLOCK_ROWS, SIGNATURES, run_starts
from pipelines.dedup.minhash import NUM_SLOTS
from pipelines.dedup.near import Members, look_up
from pipelines.dedup.signatures import BAND_SIGNATURES, SLOT_SIGNATURES
from pipelines.segments.index import Earlier
from pipelines.segments.matches import matching_rows
from shards.range import EVERYTHING, Range
from shards.storage.arrow import reraise_as_damage
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import between, column, open_between
from shards.text_hash import ERASED_ORDER

CANDIDATES = pa.schema(
    [
        ("order", pa.uint64()),
        ("generation", pa.uint32()),
        ("segment", pa.uint32()),
        ("signer", pa.uint32()),
    ]
)
"""A file of candidates: documents of the run by segment and signer, each with the order and the
generation (its place in the plan) of the earlier document to compare it with; sorted."""

CANDIDATES_AT_ONCE = 2_000_000
"""Candidates that are compared together: 0.2 GB."""


@dataclass(frozen=True, slots=True)
class KnownHashes:
    """Hashes of a band that earlier generations have, as columns of equal length, by hash.

    `hash` uint64[n]; `order` uint64[n], of the smallest document that has it; `generation`
    uint32[n], the place of its generation in the plan.
    """

    hash: np.ndarray
    order: np.ndarray
    generation: np.ndarray

    def places(self, hashes: np.ndarray) -> np.ndarray:
        """Return where each of some hashes stands here (int32[n]), -1 where it does not."""
        places = np.full(len(hashes), -1, np.int32)
        if len(self.hash):
            for start in range(0, len(hashes), BLOCK_ROWS):
                part = hashes[start : start + BLOCK_ROWS]
                at = np.minimum(np.searchsorted(self.hash, part), len(self.hash) - 1)
                places[start : start + len(part)] = np.where(self.hash[at] == part, at, -1)
        return places


class _Table(NamedTuple):
    """One table of the earlier generations."""

    generation: int
    path: AnyPath
    within: Range


def _tables(output: AnyPath, groups: Sequence[Sequence[str]], within: Range) -> list[_Table]:
    """Return the tables of each generation that overlap a range."""
    return [
        _Table(number, output / path, own)
        for number, paths in enumerate(groups)
        for index, path in enumerate(paths)
        if (own := Range.of(index, len(paths))).overlaps(within)
    ]


def _matches(
    tables: Sequence[_Table], key: str, values: np.ndarray, *, schema: pa.Schema
) -> list[pa.Table]:
    """Return the rows of each table whose key is one of some values (uint64[n], any order).

    Raises:
        DamageError: A table has not the columns of the schema, or cannot be used.
    """
    if not tables:
        return []
    values = np.sort(values)
    values = values[run_starts(values)] if len(values) else values

    def read(table: _Table) -> pa.Table:
        mine = values[between(values, table.within.low, table.within.high)]
        found = matching_rows(table.path, key, mine, within=table.within)
        with reraise_as_damage(table.path, kind="a table of signatures"):
            if not found.schema.equals(schema) or any(each.null_count for each in found.columns):
                raise ValueError(f"its columns are not {schema.names}")
        return found

    return concurrent_map(read, tables, where=tables[0].path)


def known_texts(
    output: AnyPath, earlier: Sequence[Earlier], within: Range, *, high: np.ndarray, low: np.ndarray
) -> np.ndarray:
    """Return which text hashes (bool[n]) an earlier generation has.

    Args:
        output: The folder of the dataset.
        earlier: The generations.
        within: The range of `high`.
        high: uint64[n], the first half of each hash.
        low: uint64[n], the second.
    """
    return _are_among(_texts_found(output, earlier, within, high), high, low)


def erased_texts(
    output: AnyPath, earlier: Sequence[Earlier], *, high: np.ndarray, low: np.ndarray
) -> np.ndarray:
    """Return which text hashes (bool[n]) are those of texts that were erased from the dataset.

    Args:
        output: The folder of the dataset.
        earlier: The generations.
        high: uint64[n], the first half of each hash.
        low: uint64[n], the second.
    """
    holding = [generation for generation in earlier if generation.has_erased]
    found = _texts_found(output, holding, EVERYTHING, high)
    return _are_among(found.filter(pa.array(column(found, "order") == ERASED_ORDER)), high, low)


def _texts_found(
    output: AnyPath, earlier: Sequence[Earlier], within: Range, high: np.ndarray
) -> pa.Table:
    """Return the rows of the exact tables whose hash begins like one of some hashes."""
    tables = _tables(output, [generation.exact for generation in earlier], within)
    matches = _matches(tables, "hash_high", high, schema=SIGNATURES)
    return pa.concat_tables([SIGNATURES.empty_table(), *matches])


def _are_among(found: pa.Table, high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return which text hashes (bool[n]) are those of some SIGNATURES."""
    known = np.zeros(len(high), bool)
    if not len(found):
        return known
    high_found, low_found = column(found, "hash_high"), column(found, "hash_low")
    ranked = np.lexsort((low_found, high_found))
    high_found, low_found = high_found[ranked], low_found[ranked]
    starts = np.flatnonzero(run_starts(high_found))
    longest = int(np.diff(starts, append=len(high_found)).max())
    for start in range(0, len(high), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        first = np.searchsorted(high_found, high[part])
        for step in range(longest):  # hashes of which only the first half is equal
            at = np.minimum(first + step, len(high_found) - 1)
            known[part] |= (high_found[at] == high[part]) & (low_found[at] == low[part])
    return known


def known_bands(
    output: AnyPath, earlier: Sequence[Earlier], band: int, within: Range, *, hashes: np.ndarray
) -> KnownHashes:
    """Return the hashes of a range of a band that an earlier generation has.

    Args:
        output: The folder of the dataset.
        earlier: The generations.
        band: Number of the band.
        within: The range.
        hashes: uint64[n], those to look for.
    """
    # A generation of no documents has no tables.
    of_band = [generation.bands[band : band + 1] for generation in earlier]
    tables = _tables(output, [paths[0] if paths else () for paths in of_band], within)
    parts = _matches(tables, "hash", hashes, schema=BAND_SIGNATURES)
    found = pa.concat_tables([BAND_SIGNATURES.empty_table(), *parts])
    numbers = np.array([table.generation for table in tables], np.uint32)
    generation = np.repeat(numbers, [len(part) for part in parts])
    values, order = column(found, "hash"), column(found, "order")
    ranked = np.argsort(values)
    return KnownHashes(values[ranked], order[ranked], generation[ranked])


def candidate_table(
    known: KnownHashes, places: np.ndarray, segment: np.ndarray, signer: np.ndarray
) -> pa.Table:
    """Return documents, each with an earlier document to compare it with, as CANDIDATES.

    Args:
        known: Hashes of the earlier generations.
        places: int[n], where each document's hash is there.
        segment: uint32[n].
        signer: uint32[n].
    """
    columns = [known.order[places], known.generation[places], segment, signer]
    ranked = np.lexsort(columns[::-1])
    return pa.table([values[ranked] for values in columns], schema=CANDIDATES)


def known_pairs(paths: Sequence[AnyPath], within: Range) -> Iterator["KnownPairs"]:
    """Yield the candidates of a range of the earlier documents' order.

    If one of these has very many candidates, as a page that comes in a million versions, they are
    yielded in parts.

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
            part.filter(pa.array(column(part, "signer") % num == index)) if num > 1 else part
            for part in parts
        ]
        yield KnownPairs(pa.concat_tables(chosen))


class KnownPairs:
    """Candidates, each pair once."""

    def __init__(self, table: pa.Table) -> None:
        """Make them of CANDIDATES in any order."""
        names = ("generation", "order", "segment", "signer")
        columns = [column(table, name) for name in names]
        ranked = np.lexsort(columns[::-1])
        columns = [values[ranked] for values in columns]
        first = run_starts(*columns)
        starts = np.flatnonzero(first)
        self.bands = np.diff(starts, append=len(first))
        """int[n]: of how many bands each pair comes."""
        self._generation, self._order, self._segment, self._signer = (
            values[starts] for values in columns
        )

    def similar(
        self,
        output: AnyPath,
        earlier: Sequence[Earlier],
        slots: Sequence[AnyPath],
        *,
        threshold: float,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield pairs, a block at a time, and which of them (bool[n]) are similar enough.

        Args:
            output: The folder of the dataset.
            earlier: The earlier generations.
            slots: The .slots files of all segments.
            threshold: Least similarity.
        """
        for start in range(0, len(self._order), PAIRS_AT_ONCE):
            part = slice(start, min(start + PAIRS_AT_ONCE, len(self._order)))
            own = look_up(slots, "slots", segment=self._segment[part], signer=self._signer[part])
            which, other = self._earlier_slots(output, earlier, part)
            passed = np.zeros(len(own), bool)
            passed[which[are_similar(own[which], other, threshold=threshold)]] = True
            yield part, passed

    def members(self, slots: Sequence[AnyPath], part: slice, chosen: np.ndarray) -> Members:
        """Return the documents of chosen pairs (bool[n]) of a part."""
        segment, signer = self._segment[part][chosen], self._signer[part][chosen]
        order = look_up(slots, "order", segment=segment, signer=signer)
        return Members(order, segment, signer)

    def _earlier_slots(
        self, output: AnyPath, earlier: Sequence[Earlier], part: slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which pairs (int64[m]) have which slots (uint8[m, NUM_SLOTS]) to compare with.

        None, if a takedown took the earlier document out, and left one of the same text: that one's
        bands are new again, and its slots are not kept (signatures.slot_table). Several, if a file
        that had changed was read again (--allow-changed), and both generations were made one: what
        was at one place then and now has the same order.
        """
        generation, order = self._generation[part], self._order[part]
        which, slots = [np.zeros(0, np.int64)], [np.zeros((0, NUM_SLOTS), np.uint8)]
        for number in np.unique(generation).tolist():
            rows = np.flatnonzero(generation == number)
            at, values = _slots_of(output, earlier[number], order[rows])
            which.append(rows[at])
            slots.append(values)
        return np.concatenate(which), np.concatenate(slots)


def _slots_of(
    output: AnyPath, generation: Earlier, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the documents of a generation (int64[n]) have which slots (uint8[n, …])."""
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
