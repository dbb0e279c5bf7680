"""Commit: the account is checked, the manifest written last: without one there is no dataset."""

import hashlib
import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.dedup.phases import Deduplicated
from pipelines.inputs.sources import InputFile
from pipelines.map.mapper import SplitRecord
from pipelines.merge.tasks import MergeRecord
from pipelines.report.sums import machine
from pipelines.report.write import REPORT, write_page
from pipelines.run import account
from pipelines.run.existing import INPUTS
from pipelines.segments.plan import Plan
from pipelines.tokenizers.tokenizer import Tokenizer
from shards import manifest as manifests
from shards.manifest import Generation, InputEntry, Manifest, SourceEntry, TableEntry
from shards.storage.files import remove_tree, write_json
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")


@dataclass(frozen=True, kw_only=True)
class Results:
    """What the phases of a run left."""

    records: Sequence[SplitRecord]
    plan: Plan
    dedup: Deduplicated
    merged: Mapping[str, Sequence[MergeRecord]]
    """By source."""


def input_entries(records: Sequence[SplitRecord]) -> tuple[InputEntry, ...]:
    """Return the files that were read, with the checksums of their splits."""
    by_file = itertools.groupby(records, key=lambda r: (r.source, r.relative, r.file_bytes))
    return tuple(
        InputEntry(source=key[0], path=key[1], bytes=key[2], crc32c=tuple(r.crc32c for r in found))
        for key, found in by_file
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
    account.check(results.records, results.dedup.records, results.merged)
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
                shards=tuple(shard for record in found for shard in record.shards),
                validation=tuple(shard for record in found for shard in record.validation),
            )
            for source, found in merged.items()
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


def tokenizer_entry(spec: str, tokenizer: Tokenizer) -> manifests.TokenizerEntry:
    """Return what the manifest says of a tokenizer."""
    kind, _, name = spec.partition(":")
    return manifests.TokenizerEntry(
        spec=kind,
        name=Path(name).name,
        sha256=tokenizer.fingerprint,
        pieces=tokenizer.pieces,
        vocabulary_size=tokenizer.vocabulary_size,
        dtype=tokenizer.dtype.name,
        special=tokenizer.special,
    )


def commit(
    output: AnyPath, manifest: Manifest, *, files: Sequence[InputFile], run: Mapping[str, Any]
) -> None:
    """Write what is known of the run, then the manifest.

    Args:
        output: The dataset's folder.
        manifest: What the dataset consists of.
        files: What was read, with times.
        run: What report.json says besides the account.
    """
    inputs = [
        {
            "source": f.source,
            "path": f.relative,
            "bytes": f.bytes,
            "mtime_ns": f.mtime_ns,
            "etag": f.etag,
            "from": f.path,
        }
        for f in files
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
