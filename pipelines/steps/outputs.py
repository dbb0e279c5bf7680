"""The outputs of a judging transform: three collections of record batches, and counters.

The counters have the names of those of the commands' own items.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from pipelines.execute.figures import NAMESPACE
from pipelines.read.record import WHOLE_BYTES
from pipelines.segments.rows import (
    DROPPED,
    METRIC,
    QUARANTINE_REASONS,
    QUARANTINED,
    RAW_HEAD,
    REASON,
    FilterResult,
)
from shards.errors import UserError


class FilterOutputs(NamedTuple):
    """The outputs of a transform that judges; each is a PCollection of record batches."""

    kept: Any
    """The rows that stay, with the transform's columns added."""
    dropped: Any
    """The rows that a rule leaves out, with a column `reason`."""
    quarantined: Any
    """The rows that cannot be read or used, with the columns `reason` and `raw`."""


class CorpusOutputs(NamedTuple):
    """The outputs of ReadCorpus: as of FilterOutputs, and a record of each split that was read."""

    kept: Any
    dropped: Any
    quarantined: Any
    splits: Any
    """Records for the dataset's list of inputs: hand the whole to WriteDataset(dropped=[…])."""


class BatchTransform(beam.PTransform[PCollection[pa.RecordBatch], Any]):
    """A transform of one collection of batches."""

    def __ror__(self, left: Any, label: str | None = None) -> Any:
        """Take the collection; the outputs of another transform are three."""
        if isinstance(left, FilterOutputs | CorpusOutputs):
            raise UserError(
                f"{label or type(self).__name__} was given all outputs of a transform at once: "
                "give it those that stay, as in … .kept | …"
            )
        return super().__ror__(left, label)  # type: ignore[no-untyped-call]  # Beam has no types here


def increment_counter(name: str, number: int) -> None:
    """Add to a counter of the step that runs."""
    beam.Metrics.counter(NAMESPACE, name).inc(number)


def tagged_outputs(
    kept: pa.RecordBatch, verdicts: Iterable[FilterResult], *, metrics: Collection[str] = ()
) -> Iterator[Any]:
    """Yield the rows that stay, the dropped and the quarantined ones tagged; and count them.

    Args:
        kept: The rows that stay.
        verdicts: Those that do not, a reason for each. Where they have no column `raw`, the first
            bytes of their texts stand for those of their records.
        metrics: Columns that are metrics.
    """
    increment_counter("records kept", kept.num_rows)
    for verdict in verdicts:
        reasons = verdict.reasons.to_pylist()
        for reason in sorted(set(reasons)):
            kind = QUARANTINED if reason in QUARANTINE_REASONS else DROPPED
            increment_counter(f"records {kind}", reasons.count(reason))
            increment_counter(f"records {kind} ({reason})", reasons.count(reason))
        rows = _marked(verdict.batch, metrics)
        rows = rows.append_column(REASON, verdict.reasons.cast(REASON.type))
        bad = pa.array([reason in QUARANTINE_REASONS for reason in reasons], pa.bool_())
        rejected = rows.filter(bad)
        if RAW_HEAD.name in rows.schema.names:
            raws = rejected[RAW_HEAD.name]
            rows, rejected = (one.drop_columns([RAW_HEAD.name]) for one in (rows, rejected))
        else:
            heads = [text.encode()[:WHOLE_BYTES] for text in rejected["text"].to_pylist()]
            raws = pa.array(heads, RAW_HEAD.type)
        dropped = rows.filter(pc.invert(bad))
        if dropped.num_rows:
            yield beam.TaggedOutput(DROPPED, dropped)
        if rejected.num_rows:
            yield beam.TaggedOutput(QUARANTINED, rejected.append_column(RAW_HEAD, raws))
    if kept.num_rows:
        yield _marked(kept, metrics)


def _marked(batch: pa.RecordBatch, metrics: Collection[str]) -> pa.RecordBatch:
    """Return a batch whose columns of metrics are marked as such."""
    if not metrics:
        return batch
    fields = [
        field.with_metadata({**(field.metadata or {}), METRIC: b"1"})
        if field.name in metrics
        else field
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))
