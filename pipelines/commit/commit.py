"""Commits a run: checks the account, and last writes the manifest, which completes the dataset."""

import hashlib
import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pipelines.commit import account
from pipelines.commit.existing import INPUTS, read_inputs
from pipelines.dedup.plan import DedupResult
from pipelines.merge.items import MergeRecord
from pipelines.process.processor import ProcessRecord
from pipelines.read.files import InputFile
from pipelines.report.sums import machine
from pipelines.report.write import REPORT, write_page
from pipelines.segments.index import SegmentIndex
from shards import manifest as manifests
from shards.manifest import (
    Generation,
    InputEntry,
    Manifest,
    SourceEntry,
    TableEntry,
)
from shards.storage.files import list_files, write_json
from shards.storage.remote import AnyPath

_KEPT_FOLDERS = {"map", "progress"}
"""Folders of intermediate files that later generations may need."""


@dataclass(frozen=True, kw_only=True)
class StageResults:
    """The results of a run's stages."""

    records: Sequence[ProcessRecord]
    index: SegmentIndex
    dedup: DedupResult
    merged: Mapping[str, Sequence[MergeRecord]]
    """The records of the merge, by source."""
    slots: tuple[TableEntry, ...] = ()
    """The slots tables, with which later generations are compared."""


def input_entries(records: Sequence[ProcessRecord]) -> tuple[InputEntry, ...]:
    """Return the input files with the checksums of their splits."""
    by_file = itertools.groupby(
        (split for record in records for split in record.splits),
        key=lambda split: (split.source, split.relative, split.file_bytes),
    )
    return tuple(
        InputEntry(
            source=source,
            path=path,
            bytes=file_bytes,
            crc32c=tuple(split.crc32c for split in splits),
        )
        for (source, path, file_bytes), splits in by_file
    )


def make_manifest(
    results: StageResults,
    *,
    corpus: str,
    options: Mapping[str, Any],
    tokenizer: manifests.TokenizerEntry,
    vocabulary: TableEntry,
    number: int,
) -> Manifest:
    """Return the manifest of a dataset whose only generation is made from a run's results.

    Raises:
        DamageError: The account does not balance.
    """
    account.check_account(results.records, results.dedup.records, results.merged)
    merged = results.merged
    every = [record for source in sorted(merged) for record in merged[source]]
    index = results.index
    generation = Generation(
        number=number,
        name=index.generation,
        fingerprint=index.fingerprint,
        inputs=input_entries(results.records),
        sources={
            source: SourceEntry(
                shards=tuple(shard for record in items for shard in record.shards),
                validation=tuple(shard for record in items for shard in record.validation),
            )
            for source, items in merged.items()
        },
        audit=tuple(table for record in every for table in record.audit),
        signatures=(*results.dedup.signatures, *results.slots),
        rejects=tuple(table for record in every for table in record.rejects),
        dropped=tuple(table for record in every for table in record.dropped_texts),
        accounting=account.accounting(account.final_account(merged), results.records, merged),
    )
    return Manifest(
        number=number,
        lineage=hashlib.sha256(f"{index.fingerprint}:{number}".encode()).hexdigest(),
        corpus=corpus,
        options=options,
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        libraries=results.records[0].versions,
        generations=(generation,),
    )


def with_generation(base: Manifest, made: Manifest) -> Manifest:
    """Return the manifest of a dataset with one more generation.

    Args:
        base: The manifest of the dataset so far.
        made: The manifest that the new generation would have as a separate dataset.
    """
    (generation,) = made.generations
    if made.libraries != base.libraries:
        generation = replace(generation, libraries=made.libraries)
    return replace(base, number=made.number, generations=(*base.generations, generation))


def commit(
    output: AnyPath,
    manifest: Manifest,
    *,
    inputs: Sequence[InputFile],
    run: Mapping[str, Any],
    arrivals: Sequence[float] = (),
) -> None:
    """Write report.json, report.html and other files about the run, then the manifest.

    Args:
        output: The folder of the dataset.
        manifest: The dataset's manifest, whose last generation is the new one.
        inputs: The input files of the new generation, with their times.
        run: The content of report.json without the account.
        arrivals: The known arrival times of the generation's files or documents, in seconds since
            1970.
    """
    grows = len(manifest.generations) > 1
    sums = {(entry.source, entry.path): entry.crc32c for entry in manifest.generations[-1].inputs}
    seen = [
        {
            "source": file.source,
            "path": file.relative,
            "bytes": file.bytes,
            "mtime_ns": file.mtime_ns,
            "etag": file.etag,
            "crc32c": list(sums[file.name]),
            "from": file.path,
        }
        for file in inputs
    ]
    write_json(output / INPUTS, [*(_inputs_before(output, seen) if grows else ()), *seen])
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    lag = lag_of(arrivals)
    report = {
        "dataset": manifest.identity,
        "accounting": manifest.generations[-1].accounting,
        "machine": machine(),
        "finished": finished,
        **run,
        **({"lag": lag} if lag else {}),
    }
    write_json(output / REPORT, report)
    write_page(output, manifest, report)
    manifests.write_manifest(output, manifest)


def lag_of(arrivals: Sequence[float]) -> dict[str, float]:
    """Return the median and the maximum time that files or documents have waited, in seconds.

    Args:
        arrivals: Arrival times in seconds since 1970.

    Returns:
        The median and the maximum by name; empty if there are no arrivals.
    """
    if not arrivals:
        return {}
    waits = [max(0.0, time.time() - arrival) for arrival in arrivals]
    return {"median": round(statistics.median(waits), 1), "worst": round(max(waits), 1)}


def _inputs_before(output: AnyPath, inputs: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the entries of inputs.json about files that are not in `inputs`."""
    now = {(file["source"], file["path"]) for file in inputs}
    return [file for file in read_inputs(output) if (file["source"], file["path"]) not in now]


def remove_stage_files(work: AnyPath) -> None:
    """Remove all files in .work except those in the folders `map` and `progress`."""
    for name in list_files(work):
        if name.partition("/")[0] not in _KEPT_FOLDERS:
            (work / name).unlink(missing_ok=True)
