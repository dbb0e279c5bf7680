"""Computes the hashes that dedup compares."""

import pyarrow as pa

from pipelines.dedup.fingerprint import Fingerprinter
from pipelines.dedup.segment_dedup import pack_signatures
from pipelines.segments.rows import FilterResult, whole_texts
from pipelines.steps.step import Step, no_reasons


class FingerprintStep(Step):
    """Adds the 128-bit hash of each prompt and text, and a MinHash signature if requested."""

    name = "fingerprint"

    def __init__(self, *, near: bool) -> None:
        """Make the step; `near` adds signatures, by which near-duplicates are found."""
        self.fingerprinter = Fingerprinter(near=near)

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Add `hash_high`, `hash_low` (uint64) and `signature`."""
        found = self.fingerprinter.fingerprints(whole_texts(batch))
        batch = batch.append_column("hash_high", pa.array(found.high))
        batch = batch.append_column("hash_low", pa.array(found.low))
        if found.signatures:
            batch = batch.append_column("signature", pack_signatures(found.signatures))
        return FilterResult(batch, no_reasons(batch))
