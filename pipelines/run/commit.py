"""Commit: check the account, write the manifest last. Without a manifest there is no dataset."""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipelines.dedup.phases import Deduplicated
from pipelines.inputs.files import InputFile
from pipelines.map.mapper import SplitRecord
from pipelines.merge.tasks import MergeRecord
from pipelines.report.sums import machine
from pipelines.report.write import REPORT, write_page
from pipelines.run import account
from pipelines.run.existing import INPUTS
from pipelines.segments.plan import Plan
from shards import manifest as manifests
from shards.manifest import Generation, InputEntry, Manifest, SourceEntry, TableEntry
from shards.storage.files import remove_tree, write_json
from shards.storage.remote import AnyPath


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of a run's phases."""

    records: Sequence[SplitRecord]
    plan: Plan
    dedup: Deduplicated
    merged: Mapping[str, Sequence[MergeRecord]]
    """By source."""


def input_entries(records: Sequence[SplitRecord]) -> tuple[InputEntry, ...]:
    """Return the input files with the checksums of their splits."""
    by_file = itertools.groupby(
        records, key=lambda split: (split.source, split.relative, split.file_bytes)
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


def describe(
    results: Results,
    *,
    corpus: str,
    options: Mapping[str, Any],
    tokenizer: manifests.TokenizerEntry,
    vocabulary: TableEntry,
    number: int,
) -> Manifest:
    """Return the manifest of what a run made.

    Raises:
        DamageError: The account does not balance.
    """
    account.check_account(results.records, results.dedup.records, results.merged)
    merged = results.merged
    every = [record for source in sorted(merged) for record in merged[source]]
    plan = results.plan
    generation = Generation(
        number=number,
        name=plan.generation,
        fingerprint=plan.fingerprint,
        inputs=input_entries(results.records),
        sources={
            source: SourceEntry(
                shards=tuple(shard for record in tasks for shard in record.shards),
                validation=tuple(shard for record in tasks for shard in record.validation),
            )
            for source, tasks in merged.items()
        },
        audit=tuple(table for record in every for table in record.audit),
        signatures=results.dedup.signatures,
        rejects=tuple(table for record in every for table in record.rejects),
        dropped=tuple(table for record in every for table in record.dropped_texts),
        accounting=account.accounting(account.final_account(merged), results.records, merged),
    )
    return Manifest(
        number=number,
        lineage=hashlib.sha256(f"{plan.fingerprint}:{number}".encode()).hexdigest(),
        corpus=corpus,
        options=options,
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        libraries=results.records[0].versions,
        generations=(generation,),
    )


def commit(
    output: AnyPath, manifest: Manifest, *, files: Sequence[InputFile], run: Mapping[str, Any]
) -> None:
    """Write the files about the run, then the manifest.

    Args:
        output: The folder of the dataset.
        manifest: Of the dataset.
        files: The input files, with their times.
        run: What report.json holds besides the account.
    """
    inputs = [
        {
            "source": file.source,
            "path": file.relative,
            "bytes": file.bytes,
            "mtime_ns": file.mtime_ns,
            "etag": file.etag,
            "from": file.path,
        }
        for file in files
    ]
    write_json(output / INPUTS, inputs)
    report = {
        "dataset": manifest.identity,
        "accounting": manifest.generations[-1].accounting,
        "machine": machine(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        **run,
    }
    write_json(output / REPORT, report)
    write_page(output, manifest, report)
    manifests.write_manifest(output, manifest)


def clean_up(work: AnyPath) -> None:
    """Remove the intermediate files of a finished run."""
    remove_tree(work)
