"""Writes the batches of a bundle as segments, of one source and one window each.

A bundle ends wherever the engine likes, so no byte of a dataset depends on which documents share a
segment. Files of an attempt that the engine then repeats stay in .work, where no record names
them.
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
from pipelines.segments.identity import mixed
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
"""Segments that a bundle has in the making: one for each window and source."""

Columns = tuple[tuple[str, str], ...]
"""Names and types of columns."""


@dataclass(frozen=True, kw_only=True)
class Sink:
    """The values that all workers share that write for one dataset."""

    options: Options
    fingerprint: StepSpec
    """The step that adds what dedup compares."""
    tokenize: StepSpec
    """The step for batches without tokens."""
    tokenizer: str
    """The fingerprint of the tokenizer."""
    engine: str
    """The library that tokenizes, with its version."""
    metrics: tuple[pa.Field, ...]
    """Further columns of the audit table."""
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:24])
    """Tells the notes of this pipeline from those of others."""
    lateness: int = 0
    """Seconds that rows may come after the end of their window."""

    @property
    def prefix(self) -> str:
        """The beginning of the names of this pipeline's segments."""
        return self.run[:8]


@dataclass(frozen=True, kw_only=True)
class Collected:
    """A segment that a worker has written."""

    source: str
    segment: Segment
    digest: str
    """The sum, modulo 2**64, of a hash of each row; in hexadecimal digits."""
    columns: Columns
    """Those of its documents, none if it has none: all of a source have the same."""
    begun: float = 0.0
    """When its first row came, in seconds since 1970."""


class Collect(beam.DoFn):
    """Writes batches as segments, and yields their records when the bundle ends."""

    def __init__(self, sink: Sink, *, dropped: bool) -> None:
        """Make it.

        Args:
            sink: The values that all share.
            dropped: Whether it is given what was left out, rows with a reason.
        """
        self._sink = sink
        self._dropped = dropped

    def setup(self) -> None:
        """Load what is needed."""
        self._fingerprint = self._sink.fingerprint.loaded()
        self._clock = CpuClock()
        if self._dropped:
            empty = pa.RecordBatch.from_pylist([], schema=pa.schema([*DOCUMENT_SCHEMA, PATH]))
            steps = [self._sink.tokenize.loaded(), self._fingerprint]
            self._nothing, _ = apply_steps(_whole(empty), steps, self._clock)
            """No rows, with the columns of those that are kept."""

    def start_bundle(self) -> None:
        """Begin."""
        self._open: dict[tuple[Any, str, Columns], _Open] = {}
        self._written: list[tuple[Any, Collected]] = []

    def process(self, batch: pa.RecordBatch, window: Any = beam.DoFn.WindowParam) -> None:
        """Take a batch."""
        _check(batch)
        sources = batch[SOURCE.name].cast(pa.large_string())
        names = pc.unique(sources).to_pylist()
        for name in names:
            rows = batch if len(names) == 1 else batch.filter(pc.equal(sources, name))
            self._add(rows.drop_columns([SOURCE.name]), window=window, source=name)

    def finish_bundle(self) -> Iterator[Any]:
        """Close all segments."""
        for key in [*self._open]:
            self._close(key)
        for window, collected in self._written:
            yield beam.WindowedValue(collected, window.max_timestamp(), (window,))

    def _add(self, rows: pa.RecordBatch, *, window: Any, source: str) -> None:
        audited = {field.name for field in self._sink.metrics}
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
                "WriteDataset(dropped=[…]) was given rows without a column 'reason': give it what "
                "transforms drop or quarantine, and what they keep as its input"
                if dropped
                else "WriteDataset was given rows with a column 'reason', as those that are left "
                "out have it: give these as dropped=[…], or call the column otherwise"
            )
        if dropped:
            kept, verdicts = self._nothing, [_verdict(rows)]
        else:
            steps = [self._fingerprint]
            if "tokens" in rows.schema.names:
                _check_tokens(rows, self._sink.tokenizer)
            else:
                steps.insert(0, self._sink.tokenize.loaded())
            kept, verdicts = apply_steps(_whole(rows), steps, self._clock)
        key = window, source, _columns(kept.schema)
        if key not in self._open:
            self._open[key] = _Open(self._sink)
        self._open[key].add(kept, verdicts)
        if self._open[key].builder.is_full:
            self._close(key)
        elif len(self._open) > MAX_OPEN:
            self._close(next(iter(self._open)))

    def _close(self, key: tuple[Any, str, Columns]) -> None:
        one, (window, source, columns) = self._open.pop(key), key
        folder = self._sink.options.output / WORK / "map"
        stem = f"{self._sink.prefix}{uuid.uuid4().hex[:16]}-{lifetime(window, self._sink.lateness)}"
        segment = one.builder.close(folder / stem)
        collected = Collected(
            source=source,
            segment=segment,
            digest=f"{one.digest % 2**64:x}",
            columns=columns if segment.documents else (),
            begun=one.begun,
        )
        self._written.append((window, collected))


def _columns(schema: pa.Schema) -> Columns:
    """Return the columns with their types, except of those that ReadCorpus gives."""
    return tuple(
        (field.name, "" if field.name in DOCUMENT_SCHEMA.names else str(field.type))
        for field in schema
    )


class _Open:
    """A segment in the making."""

    def __init__(self, sink: Sink) -> None:
        self.begun = time.time()
        self.builder = SegmentBuilder(
            dedup=sink.options.dedup != "none",
            schema=audit_schema(sink.metrics),
            keep_texts=sink.options.keep_dropped,
        )
        self.digest = 0

    def add(self, kept: pa.RecordBatch, verdicts: Sequence[FilterResult]) -> None:
        """Add judged rows."""
        for one in (FilterResult(kept, no_reasons(kept)), *verdicts):
            self.digest += _digest(one.batch, one.reasons)
        self.builder.add(kept, verdicts)


def _digest(rows: pa.RecordBatch, reasons: pa.Array) -> int:
    """Return the sum of a hash of each row: the same in any order, in any batches."""
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
    hashes = mixed(rows["order"].to_numpy() ^ mixed(sums))
    return int(hashes.sum(dtype=np.uint64))


_FOLLOWING = frozenset(
    {"position", "length", "ordinal", "order", "holdout", PATH.name}
    | {"text", "prompt", "tokens", UNKNOWN, "hash_high", "hash_low", "signature", RAW_HEAD.name}
)
"""Columns that a hash of a row need not read: `order` is one of the identity, which is most of
them, and tokens are read apart."""


def _verdict(rows: pa.RecordBatch) -> FilterResult:
    """Return dropped rows as a step would have."""
    reasons = rows[REASON.name].cast(pa.string())
    if reasons.null_count:
        raise UserError(
            "a batch has rows without a reason among dropped ones: give WriteDataset(dropped=[…]) "
            "what transforms drop or quarantine, and what they keep as its input"
        )
    return FilterResult(rows.drop_columns([REASON.name]), reasons)


def _whole(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with the columns of all steps that a pipeline may have left out."""
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
            f"WriteDataset was given a batch without a column {missing[0]!r}; it has "
            f"{', '.join(batch.schema.names)}. Batches of ReadCorpus have all columns; your own "
            "rows get them from FromRows"
        )
    for name in (SOURCE.name, PATH.name, "position", "order", "text"):
        if batch[name].null_count:
            raise UserError(f"WriteDataset was given rows whose {name} is null: it has to be there")


def _check_tokens(rows: pa.RecordBatch, tokenizer: str) -> None:
    made = (rows.schema.field("tokens").metadata or {}).get(TOKENIZER, b"").decode()
    if made and made != tokenizer:
        raise UserError(
            f"WriteDataset was given tokens of another tokenizer ({made[:12]}…) than its own "
            f"({tokenizer[:12]}…): give Tokenize and WriteDataset the same"
        )
