"""How large the parts of a run become: segments, tasks, shards, files. Arithmetic alone.

It all follows from a few numbers a source: splits, records, documents, tokens, and the width of a
row of each table. They come from a sample (`source_size`) or from whoever makes up a source.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipelines.corpus.options import MOST_VALIDATION, Options
from pipelines.dedup.bands import EDGES
from pipelines.dedup.exact import num_ranges
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.dedup.phases import BAND_ROWS_PER_TASK, DROPS_PER_TASK, SLOTS_PER_TASK
from pipelines.inputs.split import Split
from pipelines.map.builder import MAX_RECORDS, MAX_TOKENS
from pipelines.merge.group import (
    BYTES_PER_GROUP,
    MOST_MEMBERS,
    MOST_SLICES,
    ROWS_PER_GROUP,
    slices_are_short,
)
from pipelines.merge.holdout import LEAST_VALIDATION
from pipelines.merge.ranges import choose_cuts
from pipelines.planning.sample import SourceSample
from pipelines.segments.segment import NUM_BINS
from shards.storage.remote import RemotePath

BINS_BYTES = 16 * (NUM_BINS + 1) + 1024
"""Size of a segment's .bins."""

TABLE_BYTES = 2048
"""Size of an Arrow file besides its rows: schema, lengths, footer."""

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

    files: int
    stored_bytes: int
    splits: int
    segments: int
    records: float
    """Rows of the audit."""
    documents: float
    """Left by the map; duplicates across segments are not known yet."""
    tokens: float
    rejects: float
    texts: float
    signed: float
    map_seconds: float
    """Of one process."""
    audit_bytes: float
    kept_bytes: float
    """Of rejects and of kept texts."""
    example_bytes: float
    """Of a segment's examples."""
    row_bytes: Mapping[str, float]
    """Of a row of each of a segment's tables, by suffix."""
    tables: Mapping[str, pa.Table]
    """Some rows of each of them, by suffix."""
    dropped: float = 0.0
    """Documents that dedup across segments leaves out; no sample shows how many."""
    held: float = 0.0
    """Documents that are held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How large a run is."""

    sources: Mapping[str, SourceSize]
    token_bytes: int
    """Bytes of a token: 2 or 4."""
    shards: Mapping[str, int]
    """By source."""
    validation: Mapping[str, int]
    """Shards that are held out, by source."""
    text_ranges: int
    """Tasks of dedup for texts; 0 for none."""
    band_ranges: int
    """Tasks of dedup for each band; 0 for none."""
    drop_ranges: int
    """Files of drops."""
    slot_ranges: int = 0
    """Tasks and files of the slots of signatures; 0 where minhash cannot append."""
    remote: bool = False
    """The output is behind a URL."""

    @property
    def segments(self) -> int:
        """Segments of all sources."""
        return sum(source.segments for source in self.sources.values())

    @property
    def splits(self) -> int:
        """Tasks of the map."""
        return sum(source.splits for source in self.sources.values())

    @property
    def dedup_tasks(self) -> int:
        """Tasks that read a range of every segment."""
        return self.text_ranges + NUM_BANDS * self.band_ranges

    @property
    def slot_slices(self) -> int:
        """Slices that tasks of slots read."""
        return self.slot_ranges * self.segments

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
            source.segments * (self.shards[name] + self.validation[name])
            for name, source in self.sources.items()
        )

    @property
    def slices(self) -> int:
        """Slices of segments that dedup, slots and merge read."""
        return self.dedup_slices + self.slot_slices + self.merge_slices

    @property
    def segment_bytes(self) -> float:
        """Bytes of all segments."""
        return sum(
            source.tokens * self.token_bytes
            + source.documents
            * (source.row_bytes.get("documents", 0.0) + source.row_bytes.get("holdout", 0.0))
            + source.texts * source.row_bytes.get("hashes", 0.0)
            + source.records * source.row_bytes.get("audit", 0.0)
            + source.signed * (SIGNER_BYTES + NUM_BANDS * BAND_ROW_BYTES)
            + source.kept_bytes
            + source.segments * (BINS_BYTES + source.example_bytes + 5 * TABLE_BYTES)
            + (source.segments * BANDS_INDEX_BYTES if source.signed else 0)
            for source in self.sources.values()
        )

    @property
    def shard_bytes(self) -> float:
        """Bytes of all shards: tokens, index, documents."""
        return sum(
            source.tokens * self.token_bytes
            + source.documents * (IDX_BYTES + source.row_bytes.get("documents", 0.0))
            for source in self.sources.values()
        )

    @property
    def other_bytes(self) -> float:
        """Bytes of the dataset's other files: audit, rejects, signatures.

        Each document has hashes of its own in all bands: a sample shows few of those in common.
        """
        signer = NUM_BANDS * BAND_SIGNATURE_BYTES + SLOT_SIGNATURE_BYTES if self.slot_ranges else 0
        return sum(
            source.audit_bytes
            + source.kept_bytes
            + source.texts * SIGNATURE_BYTES
            + source.signed * signer
            for source in self.sources.values()
        )

    @property
    def most_bytes(self) -> float:
        """Bytes of all files that exist at once before the end; groups repeat the segments."""
        later = with_groups(self)
        again = 0.0 if later is self else self.segment_bytes
        for name, cuts in later.cuts.items():
            again += len(cuts) * replace(self, sources={name: self.sources[name]}).segment_bytes
        return self.segment_bytes + again + self.shard_bytes + self.other_bytes

    @property
    def cuts(self) -> dict[str, tuple[int, ...]]:
        """Into how many ranges each pass cuts the segments before merge, by source; see ranges."""
        chosen = {
            name: choose_cuts(
                source.segments,
                self.shards[name],
                rows=source.records,
                remote=self.remote,
            )
            for name, source in self.sources.items()
        }
        return {name: cuts for name, cuts in chosen.items() if cuts}

    def total(self, name: str) -> float:
        """Return the sum of a field over all sources."""
        return float(sum(getattr(source, name) for source in self.sources.values()))


def source_size(sampled: SourceSample, splits: Sequence[Split]) -> SourceSize:
    """Return how large a source becomes if all of it is like its sample."""
    sizes = {split.path: split.file_bytes for split in splits}
    ends = {split.path: split.end for split in splits}
    times = 1 / max(sampled.share, 1e-9)
    records, tokens = sampled.records * times, sampled.tokens * times
    stored = sum(sizes.values())
    fractions = [
        (split.end - split.start) / max(ends[split.path], 1) * split.file_bytes / max(stored, 1)
        for split in splits
    ]
    return SourceSize(
        files=len(sizes),
        stored_bytes=stored,
        splits=len(splits),
        segments=sum(num_segments(records * fraction, tokens * fraction) for fraction in fractions),
        records=records,
        documents=sampled.documents * times,
        tokens=tokens,
        rejects=sampled.rejects * times,
        texts=sampled.texts * times,
        signed=sampled.signed * times,
        map_seconds=sampled.seconds / max(sampled.warm_share, 1e-9),
        audit_bytes=sampled.audit_bytes * times,
        kept_bytes=sampled.kept_bytes * times,
        example_bytes=sampled.example_bytes,
        row_bytes=sampled.row_bytes,
        tables=sampled.tables,
    )


def num_segments(records: float, tokens: float) -> int:
    """Return the number of segments that a split of this many records and tokens becomes."""
    return max(1, math.ceil(records / MAX_RECORDS), math.ceil(tokens / MAX_TOKENS))


def run_extent(sources: Mapping[str, SourceSize], options: Options, *, token_bytes: int) -> Extent:
    """Return how large a run becomes.

    Args:
        sources: Its sources by name.
        options: Its options.
        token_bytes: Bytes of a token: 2 or 4.
    """
    texts, signed, dropped = (
        round(sum(getattr(source, name) for source in sources.values()))
        for name in ("texts", "signed", "dropped")
    )
    dedup, near = options.dedup != "none", options.dedup == "minhash"
    local = near and options.clusters == "local"
    shards = {
        name: options.shards or expected_shards(source, options.shard_tokens)
        for name, source in sources.items()
    }
    held = {name: validation_share(source, options.validation) for name, source in sources.items()}
    return Extent(
        sources={
            name: replace(source, held=source.documents * held[name])
            for name, source in sources.items()
        },
        token_bytes=token_bytes,
        shards=shards,
        validation={name: math.ceil(shards[name] * held[name]) for name in sources},
        text_ranges=num_ranges(texts) if dedup else 0,
        band_ranges=min(num_ranges(signed, rows_per_task=BAND_ROWS_PER_TASK), EDGES) if near else 0,
        drop_ranges=num_ranges(dropped, rows_per_task=DROPS_PER_TASK) if dedup else 0,
        slot_ranges=num_ranges(signed, rows_per_task=SLOTS_PER_TASK) if local else 0,
        remote=isinstance(options.output, RemotePath),
    )


def with_groups(extent: Extent) -> Extent:
    """Return the run as dedup finds it: in groups if slices are too many or too short."""
    short = extent.remote and slices_are_short(extent.merge_slices, extent.total("records"))
    if extent.slices <= MOST_SLICES and not short:
        return extent
    return replace(
        extent,
        sources={
            name: replace(source, segments=math.ceil(source.segments / group_members(source)))
            for name, source in extent.sources.items()
        },
    )


def group_members(source: SourceSize, *, ranges: int = 1) -> int:
    """Return the number of a source's segments in a group, which is one of so many ranges."""
    rows = source.records / source.segments
    fit = ranges * min(ROWS_PER_GROUP, BYTES_PER_GROUP / max(row_width(source), 1)) / max(rows, 1)
    return max(1, min(MOST_MEMBERS, int(fit + 1e-6)))


def row_width(source: SourceSize) -> float:
    """Return the bytes of a row of .documents or .audit, whichever is more."""
    return max(source.row_bytes.get("documents", 0.0), source.row_bytes.get("audit", 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A pass of merge.ranges over a source: each of some ranges is cut into finer ones."""

    times: int
    """How many ranges there are before."""
    cut: int
    """Into how many each is cut."""
    before: SourceSize
    after: SourceSize
    """One range before, and one after."""

    @property
    def tasks(self) -> int:
        """Segments that are written."""
        return self.times * self.cut * self.after.segments

    @property
    def slices(self) -> int:
        """Slices of segments that are read."""
        return self.times * self.cut * self.before.segments


def passes(source: SourceSize, cuts: Sequence[int]) -> list[Pass]:
    """Return the passes that cut a source."""
    found, times = list[Pass](), 1
    for cut in cuts:
        segments = math.ceil(source.segments / group_members(source, ranges=cut))
        after = replace(share(source, cut), segments=segments)
        found.append(Pass(times=times, cut=cut, before=source, after=after))
        source, times = after, times * cut
    return found


def share(source: SourceSize, parts: int) -> SourceSize:
    """Return an even share of what a source holds, in as many segments."""
    names = ("records", "documents", "tokens", "rejects", "texts", "signed", "kept_bytes")
    shares = {name: getattr(source, name) / parts for name in (*names, "dropped", "held")}
    return replace(source, **shares)


def for_merge(extent: Extent) -> Extent:
    """Return the run as a shard finds it: with the segments that overlap its range of the order."""
    cut = {name: passes(extent.sources[name], cuts)[-1] for name, cuts in extent.cuts.items()}
    return replace(
        extent,
        sources={
            name: replace(source, segments=cut[name].after.segments) if name in cut else source
            for name, source in extent.sources.items()
        },
    )


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
