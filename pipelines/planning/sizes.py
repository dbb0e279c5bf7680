"""How large the parts of a run become: segments, tasks, shards, files. Arithmetic alone.

All of it follows from few numbers a source: how many splits, records, documents and tokens there
are, and how wide a row of each table is. A sample gives them (`scaled`), or a person does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipelines.corpus.options import MOST_VALIDATION, Options
from pipelines.dedup.bands import EDGES
from pipelines.dedup.exact import num_ranges
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.dedup.phases import BAND_ROWS_PER_TASK, DROPS_PER_TASK
from pipelines.inputs.split import Split
from pipelines.map.builder import MAX_RECORDS, MAX_TOKENS
from pipelines.merge.group import BYTES_PER_GROUP, MOST_MEMBERS, MOST_SLICES, ROWS_PER_GROUP
from pipelines.merge.holdout import LEAST_VALIDATION
from pipelines.planning.sample import Sampled
from pipelines.segments.segment import NUM_BINS

BINS_BYTES = 16 * (NUM_BINS + 1) + 1024
"""Of a segment's .bins."""

TABLE_BYTES = 2048
"""Of an Arrow file besides its rows: schema, lengths, footer."""

SIGNER_BYTES, BAND_ROW_BYTES, LINK_BYTES = 124, 13, 8
"""Of a segment's .slots, .bands (a band) and .links, a row."""

BANDS_INDEX_BYTES = NUM_BANDS * (EDGES + 1) * 4

SIGNATURE_BYTES = 24
"""Of signatures/, a row."""

IDX_BYTES = 20
"""Of a shard's .idx, a document."""

UNEVEN = 1.02
"""How much fuller than the mean the fullest shard is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSize:
    """What one source comes to."""

    files: int
    stored_bytes: int
    splits: int
    segments: int
    records: float
    """Rows of the audit."""
    documents: float
    """Left by the map: duplicates across segments are not known yet."""
    tokens: float
    rejects: float
    texts: float
    signed: float
    links: float
    map_seconds: float
    """Of one process that does nothing else."""
    audit_bytes: float
    kept_bytes: float
    """Of rejects, and of texts kept."""
    example_bytes: float
    """Of a segment's examples."""
    row_bytes: Mapping[str, float]
    """Of a row of each of a segment's tables, by suffix."""
    dropped: float = 0.0
    """Documents that dedup across segments leaves out, which no sample tells."""

    held: float = 0.0
    """Documents that are held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How large a run is."""

    sources: Mapping[str, SourceSize]
    token_bytes: int
    """Of a token: 2 or 4."""
    shards: Mapping[str, int]
    """By source."""
    validation: Mapping[str, int]
    """Shards that are held out, by source."""
    text_ranges: int
    """Tasks of dedup for texts, and for each band; 0 for none."""
    band_ranges: int
    drop_ranges: int
    """Files of drops."""

    @property
    def segments(self) -> int:
        """Segments of all sources."""
        return sum(each.segments for each in self.sources.values())

    @property
    def splits(self) -> int:
        """Tasks of the map."""
        return sum(each.splits for each in self.sources.values())

    @property
    def dedup_tasks(self) -> int:
        """Tasks that read a range of every segment."""
        return self.text_ranges + NUM_BANDS * self.band_ranges

    @property
    def merge_tasks(self) -> int:
        """Tasks that write a shard."""
        return sum(self.shards.values()) + sum(self.validation.values())

    @property
    def dedup_slices(self) -> int:
        """Slices that dedup reads: segments times tasks."""
        return self.segments * self.dedup_tasks

    @property
    def merge_slices(self) -> int:
        """Slices that merge reads: segments times shards, source by source."""
        return sum(
            each.segments * (self.shards[name] + self.validation[name])
            for name, each in self.sources.items()
        )

    @property
    def slices(self) -> int:
        """Parts of segments that dedup and merge read."""
        return self.dedup_slices + self.merge_slices

    @property
    def segment_bytes(self) -> float:
        """Bytes of all segments."""
        return sum(
            each.tokens * self.token_bytes
            + each.documents
            * (each.row_bytes.get("documents", 0.0) + each.row_bytes.get("holdout", 0.0))
            + each.texts * each.row_bytes.get("hashes", 0.0)
            + each.records * each.row_bytes.get("audit", 0.0)
            + each.signed * (SIGNER_BYTES + NUM_BANDS * BAND_ROW_BYTES)
            + each.links * LINK_BYTES
            + each.kept_bytes
            + each.segments * (BINS_BYTES + each.example_bytes + 5 * TABLE_BYTES)
            + (each.segments * BANDS_INDEX_BYTES if each.signed else 0)
            for each in self.sources.values()
        )

    @property
    def shard_bytes(self) -> float:
        """Bytes of all shards: tokens, index, documents."""
        return sum(
            each.tokens * self.token_bytes
            + each.documents * (IDX_BYTES + each.row_bytes.get("documents", 0.0))
            for each in self.sources.values()
        )

    @property
    def other_bytes(self) -> float:
        """Bytes of the dataset's other files: audit, rejects, signatures."""
        return sum(
            each.audit_bytes + each.kept_bytes + each.texts * SIGNATURE_BYTES
            for each in self.sources.values()
        )

    @property
    def most_bytes(self) -> float:
        """Bytes of all of these, which are there at once before the end; groups hold them again."""
        groups = 0.0 if grouped(self) is self else self.segment_bytes
        return self.segment_bytes + groups + self.shard_bytes + self.other_bytes

    def total(self, name: str) -> float:
        """Return the sum of a number of all sources."""
        return float(sum(getattr(each, name) for each in self.sources.values()))


def scaled(sampled: Sampled, splits: Sequence[Split]) -> SourceSize:
    """Return what a source comes to if all of it is like its sample."""
    sizes = {split.path: split.file_bytes for split in splits}
    ends = {split.path: split.end for split in splits}
    times = 1 / max(sampled.share, 1e-9)
    records, tokens = sampled.records * times, sampled.tokens * times
    stored = sum(sizes.values())
    parts = [
        (split.end - split.start) / max(ends[split.path], 1) * split.file_bytes / max(stored, 1)
        for split in splits
    ]
    return SourceSize(
        files=len(sizes),
        stored_bytes=stored,
        splits=len(splits),
        segments=sum(num_segments(records * part, tokens * part) for part in parts),
        records=records,
        documents=sampled.documents * times,
        tokens=tokens,
        rejects=sampled.rejects * times,
        texts=sampled.texts * times,
        signed=sampled.signed * times,
        links=sampled.links * times,
        map_seconds=sampled.seconds / max(sampled.warm_share, 1e-9),
        audit_bytes=sampled.audit_bytes * times,
        kept_bytes=sampled.kept_bytes * times,
        example_bytes=sampled.example_bytes,
        row_bytes=sampled.row_bytes,
    )


def num_segments(records: float, tokens: float) -> int:
    """Return how many segments a split of so many records and tokens is left as."""
    return max(1, math.ceil(records / MAX_RECORDS), math.ceil(tokens / MAX_TOKENS))


def extent(sources: Mapping[str, SourceSize], options: Options, *, token_bytes: int) -> Extent:
    """Return how large a run over these sources becomes.

    Args:
        sources: What each comes to.
        options: Those of the run.
        token_bytes: 2 or 4.
    """
    texts, signed, dropped = (
        round(sum(getattr(each, name) for each in sources.values()))
        for name in ("texts", "signed", "dropped")
    )
    dedup, near = options.dedup != "none", options.dedup == "minhash"
    shards = {name: num_shards(each, options) for name, each in sources.items()}
    held = {name: share_held(each, options) for name, each in sources.items()}
    return Extent(
        sources={
            name: replace(each, held=each.documents * held[name]) for name, each in sources.items()
        },
        token_bytes=token_bytes,
        shards=shards,
        validation={name: math.ceil(shards[name] * held[name]) for name in sources},
        text_ranges=num_ranges(texts) if dedup else 0,
        band_ranges=min(num_ranges(signed, rows_per_task=BAND_ROWS_PER_TASK), EDGES) if near else 0,
        drop_ranges=num_ranges(dropped, rows_per_task=DROPS_PER_TASK) if dedup else 0,
    )


def grouped(extent: Extent) -> Extent:
    """Return the run as dedup and merge find it: of groups, where there are very many slices."""
    if extent.slices <= MOST_SLICES:
        return extent
    return replace(
        extent,
        sources={
            name: replace(each, segments=math.ceil(each.segments / members(each)))
            for name, each in extent.sources.items()
        },
    )


def members(source: SourceSize) -> int:
    """Return how many segments of a source make a group."""
    rows = source.records / source.segments
    width = max(source.row_bytes.get("documents", 0.0), source.row_bytes.get("audit", 0.0))
    fit = min(ROWS_PER_GROUP, BYTES_PER_GROUP / max(width, 1)) / max(rows, 1)
    return max(1, min(MOST_MEMBERS, int(fit)))


def num_shards(source: SourceSize, options: Options) -> int:
    """Return how many shards a source gets, about as plan.num_shards counts it."""
    if options.shards:
        return options.shards
    shards = 1
    while source.tokens * (UNEVEN if shards > 1 else 1) > shards * options.shard_tokens:
        shards *= 2
    return shards


def share_held(source: SourceSize, options: Options) -> float:
    """Return the share of a source's documents that is held out."""
    if not options.validation:
        return 0.0
    least = LEAST_VALIDATION / max(source.documents, 1)
    return min(max(options.validation, least), MOST_VALIDATION)
