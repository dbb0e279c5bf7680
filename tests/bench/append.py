"""What an append costs: dedup of 100,000 new documents against the signatures of earlier ones.

No text and no shards are made: the tables of the earlier generation are written directly, range by
range, in the sizes that dedup chooses. One new document in ten has the text of an earlier one, one
in ten is similar to one. The tables are out of the page cache when the clock starts.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipelines.dedup.exact import SIGNATURES, num_ranges
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.phases import BAND_ROWS_PER_TASK, SLOTS_PER_TASK
from pipelines.dedup.sieve import Sieve
from pipelines.dedup.signatures import BAND_SIGNATURES, SLOT_SIGNATURES
from pipelines.segments.plan import Earlier, load_plan
from shards.manifest import WORK
from shards.range import Range
from shards.tables import between, write_table
from tests.bench import dedup
from tests.bench.inputs import FOLDER
from tests.bench.table import render

EXISTING = (0, 1_000_000, 10_000_000)
NEW = 100_000
PLANTED_EVERY, CHANGED_SLOTS = 5, 10
"""Of five new documents one is planted among the earlier ones, alternately equal and similar: with
7 of the 14 bands and all but ten of the slots."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Earlier documents that new ones repeat, as columns: by order, with all their hashes."""

    high: np.ndarray
    low: np.ndarray
    order: np.ndarray
    bands: np.ndarray
    """uint64[n, NUM_BANDS]."""
    slots: np.ndarray
    """uint8[n, NUM_SLOTS]."""


def measure(existing: Sequence[int]) -> str:
    """Return the table of seconds, memory and bytes for so many earlier documents each."""
    rows = [_row(number) for number in existing]
    head = ("earlier documents", "signatures MB", "bytes each", "seconds", "CPU s",
            *dedup.MEMORY, "known")  # fmt: skip
    return render(head, rows)


def _row(existing: int) -> list[str]:
    folder = FOLDER / f"append-{existing}"
    shutil.rmtree(folder, ignore_errors=True)
    generate(folder, existing)
    tables = sorted((folder / "g0001-00000000" / "signatures").glob("*.arrow"))
    size = sum(path.stat().st_size for path in tables)
    for path in tables:
        _forget(path)
    spent = dedup.spend(folder, "minhash", "local", 1)
    shutil.rmtree(folder)
    return [
        f"{existing:,}",
        f"{size / 1e6:,.0f}",
        f"{size / existing:.0f}" if existing else "",
        f"{spent.seconds:.1f}",
        f"{spent.cpu_seconds:.1f}",
        *spent.memory,
        f"{spent.known:,}",
    ]


def generate(folder: Path, existing: int) -> None:
    """Write a segment of new documents, the tables of earlier ones, and a plan with both."""
    table = dedup.documents(np.arange(NEW), NEW)
    dedup.write_plan(folder, [Sieve(table)])
    plan = load_plan(folder / WORK, (folder / "plan").read_text())
    earlier = ()
    if existing:
        earlier = (write_tables(folder, plant(table), existing),)
    grown = replace(plan, generation="g0002-00000000", earlier=earlier)
    grown.save(folder / WORK)
    (folder / "plan").write_text(grown.name)


def plant(table: pa.Table) -> Planted:
    """Return the earlier documents that some of the new ones repeat."""
    rng = np.random.default_rng(0)
    table = table.take(np.arange(0, len(table), PLANTED_EVERY))
    packed = table["signature"].combine_chunks()
    raw = np.frombuffer(packed.buffers()[1], np.uint8).reshape(len(table), -1).copy()
    bands = np.ascontiguousarray(raw[:, : 8 * NUM_BANDS]).view("<u8")
    slots, high = raw[:, 8 * NUM_BANDS :], table["hash_high"].to_numpy().copy()
    near = slice(1, None, 2)
    high[near] = rng.integers(0, 2**64, len(high[near]), np.uint64)
    bands[near, ::2] = rng.integers(0, 2**64, bands[near, ::2].shape, np.uint64)
    slots[near, :CHANGED_SLOTS] ^= 1
    order = np.sort(rng.integers(0, 2**64, len(table), np.uint64))
    low = table["hash_low"].to_numpy()
    return Planted(high=high, low=low, order=order, bands=bands, slots=slots)


def write_tables(folder: Path, planted: Planted, existing: int) -> Earlier:
    """Write the signatures of so many documents, the planted among them."""
    name, rng = "g0001-00000000", np.random.default_rng(1)

    def write(kind: str, tables: Iterator[pa.Table]) -> tuple[str, ...]:
        paths = []
        for index, table in enumerate(tables):
            paths.append(f"{name}/signatures/{kind}-{index:05}.arrow")
            write_table(folder / paths[-1], table)
        return tuple(paths)

    texts = _ranges(rng, planted.high, existing, rows_per_task=0)
    exact = (
        _table(rng, SIGNATURES, keys, rows, (planted.low, planted.order)) for keys, rows in texts
    )
    bands = tuple(
        write(f"band-{band:02}", _band_tables(rng, planted, band, existing))
        for band in range(NUM_BANDS)
    )
    return Earlier(
        name=name,
        exact=write("exact", exact),
        bands=bands,
        slots=write("slots", _slot_tables(rng, planted, existing)),
    )


def _band_tables(
    rng: np.random.Generator, planted: Planted, band: int, existing: int
) -> Iterator[pa.Table]:
    ranges = _ranges(rng, planted.bands[:, band], existing, rows_per_task=BAND_ROWS_PER_TASK)
    for keys, rows in ranges:
        yield _table(rng, BAND_SIGNATURES, keys, rows, (planted.order,))


def _slot_tables(rng: np.random.Generator, planted: Planted, existing: int) -> Iterator[pa.Table]:
    for keys, rows in _ranges(rng, planted.order, existing, rows_per_task=SLOTS_PER_TASK):
        values = np.frombuffer(bytearray(rng.bytes(len(keys) * NUM_SLOTS)), np.uint8)
        values = values.reshape(-1, NUM_SLOTS)
        values[rows >= 0] = planted.slots[rows[rows >= 0]]
        column = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(NUM_SLOTS), len(keys), [None, pa.py_buffer(values)]
        )
        yield pa.table([keys, column], schema=SLOT_SIGNATURES)


def _ranges(
    rng: np.random.Generator, planted: np.ndarray, existing: int, *, rows_per_task: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the sorted keys of each table and which planted document has each, or -1."""
    total = num_ranges(existing, rows_per_task=rows_per_task)
    ranked = np.argsort(planted)
    for index in range(total):
        within = Range.of(index, total)
        mine = ranked[between(planted[ranked], within.low, within.high)]
        steps = np.cumsum(rng.standard_exponential((existing - len(planted)) // total + 1))
        even = (steps[:-1] / steps[-1] * 0.999999 * (within.high - within.low)).astype(np.uint64)
        even += np.uint64(within.low)
        at = np.searchsorted(even, planted[mine])
        rows = np.insert(np.full(len(even), -1, np.int64), at, mine)
        yield np.insert(even, at, planted[mine]), rows


def _table(
    rng: np.random.Generator,
    schema: pa.Schema,
    keys: np.ndarray,
    rows: np.ndarray,
    values: Sequence[np.ndarray],
) -> pa.Table:
    """Return keys and further columns of hashes: of planted documents theirs, else any."""
    columns = [keys]
    for planted in values:
        column = rng.integers(0, 2**64, len(keys), np.uint64)
        column[rows >= 0] = planted[rows[rows >= 0]]
        columns.append(column)
    return pa.table(columns, schema=schema)


def _forget(path: Path) -> None:
    """Take a file out of the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
