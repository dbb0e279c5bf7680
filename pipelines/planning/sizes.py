"""How large the parts of a run become: segments, tasks, shards, files. Arithmetic alone.

It all follows from a few numbers a source: splits, records, documents, tokens, and the width of a
row of each table. They come from a sample (sample.py).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipelines.corpus.options import MOST_VALIDATION, Options
from pipelines.dedup.bands import EDGES
from pipelines.dedup.exact import num_ranges
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.dedup.phases import BAND_ROWS_PER_TASK, SLOTS_PER_TASK
from pipelines.map.builder import MAX_RECORDS, MAX_TOKENS
from pipelines.merge.group import MOST_SLICES, slices_are_short
from pipelines.merge.holdout import LEAST_VALIDATION
from pipelines.segments.segment import NUM_BINS
from shards.storage.remote import RemotePath

SEGMENT_BYTES = 16 * (NUM_BINS + 1) + 1024 + 5 * 2048
"""Size of a segment without rows: .bins, and schema, lengths and footer of its five tables."""

SIGNER_BYTES, BAND_ROW_BYTES = 124, 20
"""Bytes a row of a segment's .slots and .bands (a band)."""

BANDS_INDEX_BYTES = NUM_BANDS * (EDGES + 1) * 4

SIGNATURE_BYTES = 24
"""Bytes a row of signatures/exact-*."""

BAND_SIGNATURE_BYTES, SLOT_SIGNATURE_BYTES = 16, 120
"""Bytes a row of signatures/band-* and of signatures/slots-*."""

IDX_BYTES = 20
"""Bytes a document of a shard's .idx."""

UNEVEN = 1.02
"""How much fuller than the mean the fullest shard is."""

GROUP_SEGMENTS = 30
"""Segments that a group is merged of, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSize:
    """How large one source becomes."""

    share: float
    """The part of its stored bytes that the sample read."""
    files: int
    stored_bytes: int
    splits: int
    segments: int
    records: float
    """Rows of the audit: documents of all records, and records that cannot be read."""
    documents: float
    """Left by the map; duplicates across segments are not known yet."""
    tokens: float
    token_bytes: int
    """Of a token: 2 or 4."""
    rejects: float
    texts: float
    """Distinct texts, for dedup."""
    signed: float
    """Signatures, for near-duplicates."""
    map_seconds: float
    """Of one process."""
    audit_bytes: float
    """Of the audit as Parquet."""
    kept_bytes: float
    """Of rejects and of kept texts."""
    example_bytes: float
    """Of a segment's examples, whose number is bounded."""
    row_bytes: Mapping[str, float]
    """Of a row of a segment's documents, holdout, hashes and audit."""
    shards: int = 1
    held_shards: int = 0
    """Shards of held-out documents, for --validation."""

    @property
    def segment_bytes(self) -> float:
        """Bytes of all segments."""
        bands_index = BANDS_INDEX_BYTES if self.signed else 0
        return (
            self.tokens * self.token_bytes
            + self.documents * (self.row_bytes["documents"] + self.row_bytes["holdout"])
            + self.texts * self.row_bytes["hashes"]
            + self.records * self.row_bytes["audit"]
            + self.signed * (SIGNER_BYTES + NUM_BANDS * BAND_ROW_BYTES)
            + self.kept_bytes
            + self.segments * (SEGMENT_BYTES + self.example_bytes + bands_index)
        )

    @property
    def shard_bytes(self) -> float:
        """Bytes of all shards: tokens, index, documents."""
        document = IDX_BYTES + self.row_bytes["documents"]
        return self.tokens * self.token_bytes + self.documents * document

    @property
    def merge_tasks(self) -> int:
        """Tasks that write a shard."""
        return self.shards + self.held_shards


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How large a run is."""

    sources: Mapping[str, SourceSize]
    text_ranges: int
    """Tasks of dedup for texts; 0 for none."""
    band_ranges: int
    """Tasks of dedup for each band; 0 for none."""
    slot_ranges: int = 0
    """Tasks and files of the slots of signatures; 0 where minhash cannot append."""
    remote: bool = False
    """The output is behind a URL."""

    def total(self, name: str) -> float:
        """Return the sum of a field or property of all sources."""
        return float(sum(getattr(source, name) for source in self.sources.values()))

    def count(self, name: str) -> int:
        """Return the sum of a whole number of all sources."""
        return round(self.total(name))

    @property
    def dedup_tasks(self) -> int:
        """Tasks of dedup that read a range of every segment."""
        return self.text_ranges + NUM_BANDS * self.band_ranges + self.slot_ranges

    @property
    def rewrites(self) -> int:
        """How often segments are merged into fewer, and these cut, so that tasks read few slices.

        Each time all are read and written once more.
        """
        segments, of_shards = self.count("segments"), self.count("merge_tasks")
        short = self.remote and slices_are_short(segments * of_shards, self.total("records"))
        slices = segments * (self.dedup_tasks + of_shards)
        return (short or slices > MOST_SLICES) + (slices > GROUP_SEGMENTS * MOST_SLICES)

    def slices(self, tasks: int) -> float:
        """Return how many parts of segments tasks read that read a part of each."""
        return self.count("segments") * tasks / float(GROUP_SEGMENTS**self.rewrites)

    @property
    def other_bytes(self) -> float:
        """Bytes of the dataset's other files: audit, rejects, signatures.

        Each document has hashes of its own in all bands: a sample shows few of those in common.
        """
        signer = NUM_BANDS * BAND_SIGNATURE_BYTES + SLOT_SIGNATURE_BYTES if self.slot_ranges else 0
        return (
            self.total("audit_bytes")
            + self.total("kept_bytes")
            + self.total("texts") * SIGNATURE_BYTES
            + self.total("signed") * signer
        )


def run_extent(sources: Mapping[str, SourceSize], options: Options) -> Extent:
    """Return how large a run over sources becomes."""
    texts, signed = (
        round(sum(getattr(source, name) for source in sources.values()))
        for name in ("texts", "signed")
    )
    near = options.dedup == "minhash"
    local = near and options.clusters == "local"
    return Extent(
        sources={name: _with_shards(source, options) for name, source in sources.items()},
        text_ranges=num_ranges(texts) if options.dedup != "none" else 0,
        band_ranges=min(num_ranges(signed, rows_per_task=BAND_ROWS_PER_TASK), EDGES) if near else 0,
        slot_ranges=num_ranges(signed, rows_per_task=SLOTS_PER_TASK) if local else 0,
        remote=isinstance(options.output, RemotePath),
    )


def _with_shards(source: SourceSize, options: Options) -> SourceSize:
    shards = options.shards or expected_shards(source, options.shard_tokens)
    held = validation_share(source, options.validation)
    return replace(source, shards=shards, held_shards=math.ceil(shards * held))


def expected_shards(source: SourceSize, shard_tokens: int) -> int:
    """Return the number of a source's shards, about as merge.holdout.num_shards counts them."""
    shards = 1
    while source.tokens * (UNEVEN if shards > 1 else 1) > shards * shard_tokens:
        shards *= 2
    return shards


def validation_share(source: SourceSize, fraction: float) -> float:
    """Return the share of a source's documents that is held out for --validation."""
    if not fraction:
        return 0.0
    least = LEAST_VALIDATION / max(source.documents, 1)
    return min(max(fraction, least), MOST_VALIDATION)


def num_segments(records: float, tokens: float) -> int:
    """Return the number of segments that a split of this many records and tokens becomes."""
    return max(1, math.ceil(records / MAX_RECORDS), math.ceil(tokens / MAX_TOKENS))
