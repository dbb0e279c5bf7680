"""How large the parts of a run become: segments, tasks, shards, files. Arithmetic alone.

It all follows from a few numbers a source: splits, records, documents, tokens, and the width of a
row of each table. They come from a sample (sample.py) or from whoever makes up a source.
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
from pipelines.merge.group import (
    BYTES_PER_GROUP,
    MOST_MEMBERS,
    MOST_SLICES,
    ROWS_PER_GROUP,
    slices_are_short,
)
from pipelines.merge.holdout import LEAST_VALIDATION
from pipelines.merge.ranges import choose_cut
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

    @property
    def merge_slices(self) -> int:
        """Slices of segments that merge reads."""
        return self.segments * self.merge_tasks

    @property
    def widest_row(self) -> float:
        """Bytes of a row of .documents or .audit, whichever is more."""
        return max(self.row_bytes["documents"], self.row_bytes["audit"])


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
        return self.text_ranges + NUM_BANDS * self.band_ranges

    @property
    def dedup_slices(self) -> int:
        """Slices of segments that dedup reads."""
        return self.count("segments") * self.dedup_tasks

    @property
    def slot_slices(self) -> int:
        """Slices of segments that tasks of slots read."""
        return self.count("segments") * self.slot_ranges

    @property
    def slices(self) -> int:
        """Slices of segments that dedup, slots and merge read."""
        return self.dedup_slices + self.slot_slices + self.count("merge_slices")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How the segments of a source are cut by ranges of the order before merge; see ranges."""

    ranges: int
    tasks: int
    """Segments that are written."""
    slices: int
    """Slices of segments that are read."""
    range: SourceSize
    """One range, as its shards read it."""


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


def with_groups(extent: Extent) -> Extent:
    """Return the run as dedup finds it: in groups if slices are too many or too short."""
    short = extent.remote and slices_are_short(
        extent.count("merge_slices"), extent.total("records")
    )
    if extent.slices <= MOST_SLICES and not short:
        return extent
    return replace(
        extent,
        sources={
            name: replace(source, segments=_num_groups(source))
            for name, source in extent.sources.items()
        },
    )


def _num_groups(source: SourceSize, *, ranges: int = 1) -> int:
    """Return the number of groups of a source's segments; each is one of some ranges of them."""
    rows = max(source.records / source.segments, 1)
    fit = min(ROWS_PER_GROUP, BYTES_PER_GROUP / max(source.widest_row, 1)) * ranges / rows
    return math.ceil(source.segments / max(1, min(MOST_MEMBERS, int(fit + 1e-6))))


def cut_sources(extent: Extent) -> dict[str, Cut]:
    """Return, by source, how those are cut whose shards would read too many or too short slices."""
    cuts = {
        name: choose_cut(source.segments, source.shards, rows=source.records, remote=extent.remote)
        for name, source in extent.sources.items()
    }
    return {name: cut_source(extent.sources[name], cut) for name, cut in cuts.items() if cut > 1}


def cut_source(source: SourceSize, ranges: int) -> Cut:
    """Return how a source is cut into so many ranges."""
    segments = _num_groups(source, ranges=ranges)
    return Cut(
        ranges=ranges,
        tasks=ranges * segments,
        slices=ranges * source.segments,
        range=replace(source, records=source.records / ranges, segments=segments, signed=0),
    )
