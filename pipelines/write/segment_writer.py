"""Writes the batches of a bundle as segments; a segment has one source and one window.

The engine decides where bundles end, so no byte of a dataset depends on which documents share a
segment. If the engine repeats a bundle, the files of the first attempt stay in .work, where no
record names them.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.options import Options
from pipelines.execute import beam
from pipelines.process.builder import SegmentBuilder
from pipelines.segments.audit import audit_schema
from pipelines.segments.identity import mix_bits
from pipelines.segments.rows import (
    CLEAN,
    DOCUMENT_SCHEMA,
    METRIC,
    PATH,
    RAW_HEAD,
    REASON,
    SOURCE,
    FilterResult,
    constant_column,
)
from pipelines.segments.segment import Segment
from pipelines.segments.unknown import UNKNOWN
from pipelines.steps.spec import StepSpec
from pipelines.steps.step import CpuClock, apply_steps, no_reasons
from pipelines.steps.tokenize import TOKENIZER
from pipelines.write.windows import lifetime
from shards.errors import UserError
from shards.manifest import WORK
from shards.storage.files import crc32c_of

MAX_OPEN = 64
"""The maximum number of unfinished segments of a bundle: one per window, source and columns."""

Columns = tuple[tuple[str, str], ...]
"""The names and types of columns."""


@dataclass(frozen=True, kw_only=True)
class WriteContext:
    """The values that all workers of one WriteDataset share."""

    options: Options
    fingerprint: StepSpec
    """The step that adds the hashes and signatures for dedup."""
    tokenize: StepSpec
    """The step that tokenizes batches without tokens."""
    tokenizer: str
    """The fingerprint of the tokenizer."""
    engine: str
    """The library that tokenizes, with its version."""
    metrics: tuple[pa.Field, ...]
    """The columns of metrics in the audit table."""
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:24])
    """The identifier of the pipeline, for its job's store and the names of its segments."""
    lateness: int = 0
    """The maximum number of seconds by which rows may arrive after the end of their window."""

    @property
    def prefix(self) -> str:
        """The prefix of the names of this pipeline's segments."""
        return self.run[:8]


@dataclass(frozen=True, kw_only=True)
class SegmentResult:
    """A segment that a worker wrote."""

    source: str
    segment: Segment
    digest: str
    """The sum, modulo 2**64, of a hash of each row, in hexadecimal digits."""
    columns: Columns
    """The columns of the segment's documents, equal for a whole source; empty if there are none."""
    begun: float = 0.0
    """When the first row arrived, in seconds since 1970."""


class WriteSegments(beam.DoFn):
    """Writes batches as segments, and yields their records when the bundle ends."""

    def __init__(self, context: WriteContext, *, dropped: bool) -> None:
        """Make a writer.

        Args:
            context: The values that all workers share.
            dropped: Whether the batches are dropped or quarantined rows, which have a reason.
        """
        self._context = context
        self._dropped = dropped

    def setup(self) -> None:
        """Load the steps."""
        self._fingerprint = self._context.fingerprint.loaded()
        self._clock = CpuClock()
        if self._dropped:
            empty = pa.RecordBatch.from_pylist([], schema=pa.schema([*DOCUMENT_SCHEMA, PATH]))
            steps = [self._context.tokenize.loaded(), self._fingerprint]
            self._nothing, _ = apply_steps(_whole(empty), steps, self._clock)
            """A batch without rows, with the columns of kept rows."""

    def start_bundle(self) -> None:
        """Start a bundle, which has no open segments yet."""
        self._open: dict[tuple[Any, str, Columns], _Open] = {}
        self._written: list[tuple[Any, SegmentResult]] = []

    def process(self, batch: pa.RecordBatch, window: Any = beam.DoFn.WindowParam) -> None:
        """Add the rows of a batch to the open segments."""
        _check(batch)
        sources = batch[SOURCE.name].cast(pa.large_string())
        names = pc.unique(sources).to_pylist()
        for name in names:
            rows = batch if len(names) == 1 else batch.filter(pc.equal(sources, name))
            self._add(rows.drop_columns([SOURCE.name]), window=window, source=name)

    def finish_bundle(self) -> Iterator[Any]:
        """Close all segments and yield their results."""
        for key in [*self._open]:
            self._close(key)
        for window, collected in self._written:
            yield beam.WindowedValue(collected, window.max_timestamp(), (window,))

    def _add(self, rows: pa.RecordBatch, *, window: Any, source: str) -> None:
        audited = {field.name for field in self._context.metrics}
        rows = rows.drop_columns(
            [
                field.name
                for field in rows.schema
                if METRIC in (field.metadata or {}) and field.name not in audited
            ]
        )
        dropped = self._dropped
        if (REASON.name in rows.schema.names) != dropped:
            raise UserError(
                "rows in dropped=[…] of WriteDataset have no column 'reason': list only rows there "
                "that transforms drop or quarantine; the rows that they keep are the input"
                if dropped
                else "input rows of WriteDataset have a column 'reason', like dropped rows: pass "
                "dropped rows as dropped=[…], or rename the column"
            )
        if dropped:
            kept, results = self._nothing, [_verdict(rows)]
        else:
            steps = [self._fingerprint]
            if "tokens" in rows.schema.names:
                _check_tokens(rows, self._context.tokenizer)
            else:
                steps.insert(0, self._context.tokenize.loaded())
            kept, results = apply_steps(_whole(rows), steps, self._clock)
        key = window, source, _columns(kept.schema)
        if key not in self._open:
            self._open[key] = _Open(self._context)
        self._open[key].add(kept, results)
        if self._open[key].builder.is_full:
            self._close(key)
        elif len(self._open) > MAX_OPEN:
            self._close(next(iter(self._open)))

    def _close(self, key: tuple[Any, str, Columns]) -> None:
        one, (window, source, columns) = self._open.pop(key), key
        folder = self._context.options.output / WORK / "map"
        closing = lifetime(window, self._context.lateness)
        stem = f"{self._context.prefix}{uuid.uuid4().hex[:16]}-{closing}"
        segment = one.builder.close(folder / stem)
        collected = SegmentResult(
            source=source,
            segment=segment,
            digest=f"{one.digest % 2**64:x}",
            columns=columns if segment.documents else (),
            begun=one.begun,
        )
        self._written.append((window, collected))


def _columns(schema: pa.Schema) -> Columns:
    """Return the columns with their types; the types of ReadCorpus's columns are left out."""
    return tuple(
        (field.name, "" if field.name in DOCUMENT_SCHEMA.names else str(field.type))
        for field in schema
    )


class _Open:
    """An unfinished segment."""

    def __init__(self, context: WriteContext) -> None:
        self.begun = time.time()
        self.builder = SegmentBuilder(
            dedup=context.options.dedup != "none",
            schema=audit_schema(context.metrics),
            keep_texts=context.options.keep_dropped,
        )
        self.digest = 0

    def add(self, kept: pa.RecordBatch, results: Sequence[FilterResult]) -> None:
        """Add kept rows, and the results of steps for the other rows."""
        for one in (FilterResult(kept, no_reasons(kept)), *results):
            self.digest += _digest(one.batch, one.reasons)
        self.builder.add(kept, results)


def _digest(rows: pa.RecordBatch, reasons: pa.Array) -> int:
    """Return the sum of the hashes of rows, which depends neither on order nor on batches."""
    if not rows.num_rows:
        return 0
    named = sorted(name for name in rows.schema.names if name not in _FOLLOWING)
    values = [*(rows[name].to_pylist() for name in named), reasons.to_pylist()]
    sums = np.fromiter(
        (crc32c_of(repr(row).encode()) for row in zip(*values, strict=True)),
        np.uint64,
        rows.num_rows,
    )
    if "tokens" in rows.schema.names:
        tokens = rows["tokens"]
        flat = np.ascontiguousarray(tokens.flatten().to_numpy()).view(np.uint8)
        sizes = tokens.value_lengths().to_numpy() * tokens.type.value_type.bit_width // 8
        ends = np.cumsum(sizes).tolist()
        starts = [0, *ends[:-1]]
        texts = [crc32c_of(flat[start:end]) for start, end in zip(starts, ends, strict=True)]
        sums = sums << np.uint64(32) | np.array(texts, np.uint64)
    hashes = mix_bits(rows["order"].to_numpy() ^ mix_bits(sums))
    return int(hashes.sum(dtype=np.uint64))


_FOLLOWING = frozenset(
    {"position", "length", "ordinal", "order", "holdout", PATH.name}
    | {"text", "prompt", "tokens", UNKNOWN, "hash_high", "hash_low", "signature", RAW_HEAD.name}
)
"""Columns that the hash of a row leaves out, because they follow from `order`, which is a hash of
the identity, or from the tokens; `order` and tokens are hashed separately."""


def _verdict(rows: pa.RecordBatch) -> FilterResult:
    """Return dropped rows in the form of a step's result."""
    reasons = rows[REASON.name].cast(pa.string())
    if reasons.null_count:
        raise UserError(
            "rows in dropped=[…] of WriteDataset have an empty 'reason': list only rows there that "
            "transforms drop or quarantine; the rows that they keep are the input"
        )
    return FilterResult(rows.drop_columns([REASON.name]), reasons)


def _whole(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with empty values in the columns of any steps that the pipeline left out."""
    missing = {
        "language": constant_column("", rows.num_rows),
        "score": pa.nulls(rows.num_rows, pa.float32()),
        "repaired": pa.nulls(rows.num_rows, pa.bool_()),
    }
    for name, column in missing.items():
        if name not in rows.schema.names:
            rows = rows.append_column(name, column)
    return rows.drop_columns([CLEAN.name]) if CLEAN.name in rows.schema.names else rows


def _check(batch: pa.RecordBatch) -> None:
    missing = [
        name
        for name in (*DOCUMENT_SCHEMA.names, SOURCE.name, PATH.name)
        if name not in batch.schema.names
    ]
    if missing:
        raise UserError(
            f"a batch that WriteDataset received has no column {missing[0]!r}; it has "
            f"{', '.join(batch.schema.names)}. Batches of ReadCorpus have all columns; FromRows "
            "adds them to your own rows"
        )
    for name in (SOURCE.name, PATH.name, "position", "order", "text"):
        if batch[name].null_count:
            raise UserError(f"rows that WriteDataset received have a null {name}: fill it in")


def _check_tokens(rows: pa.RecordBatch, tokenizer: str) -> None:
    made = (rows.schema.field("tokens").metadata or {}).get(TOKENIZER, b"").decode()
    if made and made != tokenizer:
        raise UserError(
            f"WriteDataset received tokens of another tokenizer ({made[:12]}…) than its own "
            f"({tokenizer[:12]}…): give Tokenize and WriteDataset the same tokenizer"
        )
