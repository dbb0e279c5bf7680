"""Writes datasets that grow: generations of made-up documents with all their tables."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shards.manifest import (
    TRAIN,
    VALIDATION,
    Generation,
    InputEntry,
    Manifest,
    ShardEntry,
    SourceEntry,
    TableEntry,
    read_manifest,
    write_manifest,
)
from shards.range import EVERYTHING, Range
from shards.reader import Dataset
from shards.storage.files import atomic_write
from shards.tables import spread_over, write_entry
from tests.shards.datasets import manifest_of, put_shard

EOS = 256
PIECES = [bytes([i]) for i in range(256)] + [b"<|endoftext|>"]
SOURCES = ("news", "wiki")
_SLOTS = pa.binary(4)


def grow(
    directory: Path,
    *,
    documents: int = 20,
    shards: int = 2,
    overwrite: bool = False,
    **fields: Any,
) -> Manifest:
    """Add a generation to a dataset, or make one of a single generation; return its manifest.

    Args:
        directory: The dataset's folder.
        documents: How many each source gets.
        shards: Into how many shards each source is cut.
        overwrite: Replace the generations that are there.
        fields: Of the generation.
    """
    before = read_manifest(directory) if (directory / "manifest.json").exists() else None
    number = before.number + 1 if before else 1
    present = before.generations if before and not overwrite else ()
    manifest = before or manifest_of(
        directory,
        {},
        corpus="text",
        pieces=PIECES,
        special={"eos": EOS},
        name="none",
        fingerprint="",
    )
    rng = np.random.default_rng(number)
    earlier = [generation.fingerprint for generation in present]
    content = f"{earlier} {number} {documents} {shards}"
    fingerprint = hashlib.sha256(content.encode()).hexdigest()
    name = f"g{number:04d}-{fingerprint[:8]}"
    folder = directory / name
    rows = {source: _rows(rng, source, number, documents) for source in SOURCES}
    generation = Generation(
        number=number,
        name=name,
        fingerprint=fingerprint,
        inputs=tuple(
            InputEntry(source=source, path=f"{number}.json", bytes=9, crc32c=(number,))
            for source in SOURCES
        ),
        sources={source: _source(folder / source, rows[source], shards) for source in SOURCES},
        audit=tuple(
            entry
            for source in SOURCES
            for entry in _audit(folder / "audit", source, rows[source], shards)
        ),
        rejects=(_rejects(folder / "rejects", rows["wiki"]),),
        signatures=_signatures(folder / "signatures", rows),
        accounting={
            source: {"read": documents + 1, "kept": documents, "dropped": {"short": number}}
            for source in SOURCES
        },
    )
    manifest = replace(
        manifest,
        number=number,
        lineage=manifest.lineage if present else fingerprint,
        options={"shard_tokens": 200},
        generations=(*present, replace(generation, **fields)),
    )
    write_manifest(directory, manifest)
    return manifest


def _rows(rng: np.random.Generator, source: str, number: int, count: int) -> list[dict[str, Any]]:
    rows = [
        {
            "order": int(order),
            "position": position,
            "ordinal": position % 2,
            "path": f"{source}-{number}.json",
            "tokens": [*rng.integers(0, 256, rng.integers(1, 12)).tolist(), EOS],
            "validation": position % 7 == 0,
        }
        for position, order in enumerate(rng.integers(0, 2**64 - 1, count, np.uint64))
    ]
    return sorted(rows, key=lambda row: row["order"])


def _source(folder: Path, rows: Sequence[dict[str, Any]], shards: int) -> SourceEntry:
    train = [row for row in rows if not row["validation"]]
    held = [row for row in rows if row["validation"]]
    return SourceEntry(
        shards=tuple(
            _shard(folder / f"{index:05}", _within(train, Range.of(index, shards)))
            for index in range(shards)
        ),
        validation=(_shard(folder / "validation-00000", held),) if held else (),
    )


def _within(rows: Sequence[dict[str, Any]], within: Range) -> list[dict[str, Any]]:
    return [row for row in rows if within.low <= row["order"] < within.high]


def _shard(stem: Path, rows: Sequence[dict[str, Any]]) -> ShardEntry:
    directory = stem.parents[2]
    return put_shard(
        directory,
        stem.relative_to(directory).as_posix(),
        [row["tokens"] for row in rows],
        order=[row["order"] for row in rows],
        position=pa.array([row["position"] for row in rows], pa.int64()),
        ordinal=pa.array([row["ordinal"] for row in rows], pa.int32()),
        path=pa.array([row["path"] for row in rows], pa.large_string()).dictionary_encode(),
    )


def _audit(
    folder: Path, source: str, rows: Sequence[dict[str, Any]], shards: int
) -> list[TableEntry]:
    entries = []
    for index in range(shards):
        part = _within(rows, Range.of(index, shards))
        table = pa.table(
            {
                "order": pa.array([row["order"] for row in part], pa.uint64()),
                "path": pa.array([row["path"] for row in part], pa.large_string()),
                "position": pa.array([row["position"] for row in part], pa.int64()),
                "verdict": pa.array(["kept"] * len(part), pa.large_string()),
                "reason": pa.array([None] * len(part), pa.large_string()),
            }
        )
        entries.append(_parquet(folder / f"{source}-{index:05}.parquet", table))
    return entries


def _rejects(folder: Path, rows: Sequence[dict[str, Any]]) -> TableEntry:
    """Another document of the first record, which could not be read."""
    order = pa.array([rows[0]["order"] ^ 1], pa.uint64())
    place = {name: [rows[0][name]] for name in ("path", "position")}
    table = pa.table({"order": order, **place, "raw": [b"not read"]})
    return _parquet(folder / "wiki-00000.parquet", table)


def _parquet(path: Path, table: pa.Table) -> TableEntry:
    with atomic_write(path) as handle:
        pq.write_table(table, handle)
    return TableEntry(
        path=path.relative_to(path.parents[2]).as_posix(), rows=len(table), **vars(handle.entry)
    )


def _signatures(folder: Path, rows: dict[str, list[dict[str, Any]]]) -> tuple[TableEntry, ...]:
    """Write an exact table, one of a band and one of slots: hashes follow from the orders."""
    order = np.sort(np.array([row["order"] for part in rows.values() for row in part], np.uint64))
    exact, band = (_sorted(order * np.uint64(odd), order) for odd in (3, 5))
    columns = {
        "exact-00000": {"hash_high": exact[0], "hash_low": ~exact[0], "order": exact[1]},
        "band-00-00000": {"hash": band[0], "order": band[1]},
        "slots-00000": {
            "order": order,
            "slots": pa.array([int(value).to_bytes(8, "little")[:4] for value in order], _SLOTS),
        },
    }
    directory = folder.parents[1]
    return tuple(
        write_entry(
            folder / f"{name}.arrow", spread_over(pa.table(table), EVERYTHING), directory=directory
        )
        for name, table in columns.items()
    )


def _sorted(hashes: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ranked = np.argsort(hashes)
    return hashes[ranked], order[ranked]


def documents_of(directory: Path) -> Counter[tuple[Any, ...]]:
    """Every document: source, split, path, position, ordinal, order and tokens."""
    dataset = Dataset.open(directory)
    found: Counter[tuple[Any, ...]] = Counter()
    for source in dataset.sources:
        for split in (TRAIN, VALIDATION):
            for shard in dataset.documents(source, split=split).shards():
                columns = shard.documents.select(["path", "position", "ordinal", "order"])
                for row, values in enumerate(columns.to_pylist()):
                    found[(source, split, *values.values(), tuple(shard[row].tolist()))] += 1
    return found
