"""What every judging transform gives: three collections of record batches, and counters.

The counters have the names of those of the commands' own tasks.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine import beam
from pipelines.engine.beam import PCollection
from pipelines.engine.metrics import NAMESPACE
from pipelines.segments.rows import DROPPED, NAME, QUARANTINED, REJECTS, Verdict
from shards.errors import UserError

REASON = pa.field("reason", NAME)
"""The column of dropped and quarantined rows that says why."""

RAW = pa.field("raw", pa.large_binary())
"""The column of quarantined rows with the first 64 KiB of the record."""

RAW_BYTES = 64 << 10

METRIC = b"corpusmill.metric"
"""Marks the fields of metrics: they are of the audit table, not of a dataset's documents."""


class Judged(NamedTuple):
    """The outputs of a transform that judges; each is a PCollection of record batches."""

    kept: Any
    """The rows that stay, with the transform's columns added."""
    dropped: Any
    """The rows that a rule leaves out, with a column `reason`."""
    quarantined: Any
    """The rows that cannot be read or used, with the columns `reason` and `raw`."""


class CorpusOutputs(NamedTuple):
    """The outputs of ReadCorpus: those of Judged, and a record of each split that was read."""

    kept: Any
    dropped: Any
    quarantined: Any
    splits: Any
    """Records for the dataset's list of inputs: hand the whole to WriteDataset(dropped=[…])."""


def marked(batch: pa.RecordBatch, metrics: Collection[str]) -> pa.RecordBatch:
    """Return a batch whose columns of metrics are marked as such."""
    fields = [
        field.with_metadata({**(field.metadata or {}), METRIC: b"1"})
        if field.name in metrics
        else field
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


class OfBatches(beam.PTransform[PCollection[pa.RecordBatch], Any]):
    """A transform of one collection of batches."""

    def __ror__(self, left: Any, label: str | None = None) -> Any:
        """Take the collection; the outputs of another transform are three."""
        if isinstance(left, Judged | CorpusOutputs):
            raise UserError(
                f"{label or type(self).__name__} was given all outputs of a transform at once: "
                "give it those that stay, as in … .kept | …"
            )
        return super().__ror__(left, label)  # type: ignore[no-untyped-call]  # Beam has no types here


class Counters:
    """The counters of one step; made in each worker."""

    def __init__(self) -> None:
        self._counters: dict[str, Any] = {}

    def add(self, name: str, number: int) -> None:
        """Add to a counter."""
        if name not in self._counters:
            self._counters[name] = beam.Metrics.counter(NAMESPACE, name)
        self._counters[name].inc(number)


def judged_outputs(
    kept: pa.RecordBatch,
    verdicts: Sequence[Verdict],
    counters: Counters,
    *,
    raws: pa.Array | None = None,
) -> Iterator[Any]:
    """Yield the rows that stay, the dropped and the quarantined ones tagged; and count them.

    Args:
        kept: The rows that stay.
        verdicts: Those that do not, a reason for each.
        counters: Count them.
        raws: The first bytes of the records of the first verdict's rows, if they are known; else
            those of the text stand for them.
    """
    counters.add("records kept", kept.num_rows)
    for number, verdict in enumerate(verdicts):
        if not verdict.batch.num_rows:
            continue
        reasons = verdict.reasons.to_pylist()
        for reason in sorted(set(reasons)):
            kind = QUARANTINED if reason in REJECTS else DROPPED
            counters.add(f"records {kind}", reasons.count(reason))
            counters.add(f"records {kind} ({reason})", reasons.count(reason))
        rows = verdict.batch.append_column(REASON, verdict.reasons.cast(REASON.type))
        bad = pa.array([reason in REJECTS for reason in reasons], pa.bool_())
        dropped = rows.filter(pc.invert(bad))
        if dropped.num_rows:
            yield beam.TaggedOutput(DROPPED, dropped)
        if dropped.num_rows < rows.num_rows:
            known = raws.filter(bad) if raws is not None and not number else None
            rejected = rows.filter(bad)
            yield beam.TaggedOutput(
                QUARANTINED, rejected.append_column(RAW, known or _heads(rejected["text"]))
            )
    if kept.num_rows:
        yield kept


def _heads(texts: pa.Array) -> pa.Array:
    raws = [text.encode()[:RAW_BYTES] for text in texts.to_pylist()]
    return pa.array(raws, RAW.type)
