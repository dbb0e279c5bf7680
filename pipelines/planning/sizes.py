"""How large the parts of a run become: segments, tasks, shards, files. Arithmetic alone.

It all follows from a few numbers a source: tasks of the map, records, documents, tokens, and the
bytes of what they become. They come from a sample (sample.py).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from pipelines.corpus.options import MOST_VALIDATION, Options
from pipelines.dedup.bands import EDGES
from pipelines.dedup.exact import num_ranges
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.dedup.phases import BAND_ROWS_PER_TASK, SLOTS_PER_TASK, many_ranges
from pipelines.map.builder import MAX_RECORDS, MAX_TOKENS
from pipelines.merge.holdout import LEAST_VALIDATION
from pipelines.merge.ranges import choose_cut, num_slices
from shards.storage.remote import RemotePath

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
    tasks: int
    """Of the map."""
    segments: int
    records: float
    """Rows of the audit: documents of all records, and records that cannot be read."""
    documents: float
    """Left by the map; duplicates across segments are not known yet."""
    tokens: float
    rejects: float
    texts: float
    """Distinct texts, for dedup."""
    signed: float
    """Signatures, for near-duplicates."""
    map_seconds: float
    """Of one process."""
    segment_bytes: float
    """Of all segments."""
    token_bytes: float
    """Of the tokens in them."""
    document_bytes: float
    """Of their rows of documents."""
    table_bytes: float
    """Of the dataset's audit, rejects and texts of dropped documents."""
    shards: int = 1
    held_shards: int = 0
    """Shards of held-out documents, for --validation."""

    @property
    def shard_bytes(self) -> float:
        """Bytes of all shards: tokens, index, documents."""
        return self.token_bytes + self.documents * IDX_BYTES + self.document_bytes

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

    def _cut(self, source: SourceSize) -> int:
        return choose_cut(source.segments, source.shards, rows=source.records, remote=self.remote)

    @property
    def rewritten_bytes(self) -> float:
        """Bytes of segments that are cut by ranges of the order, to be read and written again."""
        cut = (source for source in self.sources.values() if self._cut(source) > 1)
        return sum(source.segment_bytes for source in cut)

    @property
    def merge_slices(self) -> int:
        """How many parts of segments merge reads."""
        return sum(
            num_slices(source.segments, source.merge_tasks, self._cut(source))
            for source in self.sources.values()
        )

    @property
    def other_bytes(self) -> float:
        """Bytes of the dataset's other files: audit, rejects, signatures.

        Each document has hashes of its own in all bands: a sample shows few of those in common.
        """
        signer = NUM_BANDS * BAND_SIGNATURE_BYTES + SLOT_SIGNATURE_BYTES if self.slot_ranges else 0
        return (
            self.total("table_bytes")
            + self.total("texts") * SIGNATURE_BYTES
            + self.total("signed") * signer
        )


def run_extent(sources: Mapping[str, SourceSize], options: Options) -> Extent:
    """Return how large a run over sources becomes."""
    texts, signed = (
        round(sum(getattr(source, name) for source in sources.values()))
        for name in ("texts", "signed")
    )
    many = many_ranges(texts, options.dedup)
    ranges = partial(num_ranges, many=many)
    near = options.dedup == "minhash"
    return Extent(
        sources={name: _with_shards(source, options) for name, source in sources.items()},
        text_ranges=ranges(texts) if options.dedup != "none" else 0,
        band_ranges=min(ranges(signed, rows_per_task=BAND_ROWS_PER_TASK), EDGES) if near else 0,
        slot_ranges=ranges(signed, rows_per_task=SLOTS_PER_TASK) if near else 0,
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
    """Return the number of segments that a task of this many records and tokens makes."""
    return max(1, math.ceil(records / MAX_RECORDS), math.ceil(tokens / MAX_TOKENS))
