"""The outputs of a transform that judges texts: three collections of record batches, and counters.

The counters have the same names as those of the commands.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from pipelines.execute.counters import NAMESPACE
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
    """The outputs of a transform that judges texts, each a PCollection of record batches."""

    kept: Any
    """The rows that are kept, with the columns that the transform adds."""
    dropped: Any
    """The rows that a rule drops, with a column `reason`."""
    quarantined: Any
    """The rows that cannot be read or used, with the columns `reason` and `raw`."""


class CorpusOutputs(NamedTuple):
    """The outputs of ReadCorpus: those of FilterOutputs, and a record of each split."""

    kept: Any
    dropped: Any
    quarantined: Any
    splits: Any
    """Records for the dataset's list of inputs. To include them, pass the whole CorpusOutputs in
    WriteDataset(dropped=[…])."""


class BatchTransform(beam.PTransform[PCollection[pa.RecordBatch], Any]):
    """A transform of one collection of batches."""

    def __ror__(self, left: Any, label: str | None = None) -> Any:
        """Apply the transform; refuse several outputs of another transform."""
        if isinstance(left, FilterOutputs | CorpusOutputs):
            raise UserError(
                f"{label or type(self).__name__} was applied to all outputs of a transform: apply "
                "it to those that are kept, as in … .kept | …"
            )
        return super().__ror__(left, label)  # type: ignore[no-untyped-call]  # Beam has no types here


def increment_counter(name: str, number: int) -> None:
    """Add to a counter of the current Beam step."""
    beam.Metrics.counter(NAMESPACE, name).inc(number)


def tagged_outputs(
    kept: pa.RecordBatch, results: Iterable[FilterResult], *, metrics: Collection[str] = ()
) -> Iterator[Any]:
    """Yield the kept rows, and the dropped and quarantined rows with tags, and count all rows.

    Args:
        kept: The rows that are kept.
        results: The other rows, each with a reason. If they have no column `raw`, quarantined rows
            get one with the first bytes of their texts.
        metrics: The columns that are metrics.
    """
    increment_counter("records kept", kept.num_rows)
    for result in results:
        reasons = result.reasons.to_pylist()
        for reason in sorted(set(reasons)):
            kind = QUARANTINED if reason in QUARANTINE_REASONS else DROPPED
            increment_counter(f"records {kind}", reasons.count(reason))
            increment_counter(f"records {kind} ({reason})", reasons.count(reason))
        rows = _marked(result.batch, metrics)
        rows = rows.append_column(REASON, result.reasons.cast(REASON.type))
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
    """Return a batch whose columns of metrics are marked in the schema."""
    if not metrics:
        return batch
    fields = [
        field.with_metadata({**(field.metadata or {}), METRIC: b"1"})
        if field.name in metrics
        else field
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))
