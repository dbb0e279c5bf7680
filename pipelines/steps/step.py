"""A step: a name, models that are loaded once, and columns that it adds to the audit table.

A step never removes rows itself. It gives a reason to each row that is to be dropped, and
`apply_steps` removes these rows before the next step. Steps that measure texts are an exception:
every text gets the metrics of all these steps, so that the audit table alone gives the verdicts
under other bounds. Each of these steps except the last defers its drops.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.segments.rows import FilterResult

DEFERRED_REASON = "deferred_reason"
"""The column with the reasons of rows that are dropped after the next step has measured them."""


class Step(ABC):
    """A step with its models; each process makes it once."""

    name: str
    """The name of the step in the report and in the pages of Beam runners."""
    reasons: Sequence[str] = ()
    """Every reason that the step may give."""
    needs: Sequence[str] = ("prompt", "text")
    """The columns that batches must have."""
    adds: Sequence[str] = ()
    """The columns that the step adds to batches, except for those of metrics."""
    fields: tuple[pa.Field, ...] = ()
    """The columns of metrics, which the step adds to batches and to the audit table."""
    fingerprints: Mapping[str, Any] = MappingProxyType({})
    """The fingerprints of files and models, by the option whose path or name they replace."""
    library_versions: Mapping[str, str] = MappingProxyType({})
    """The libraries that affect bytes, with their versions."""
    measure_only: bool = False
    """Whether drops are deferred, so that the next step measures all rows."""

    @abstractmethod
    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Return the same rows with columns added, and a reason for each row to drop."""


class NamedStep(Protocol):
    """A step, or any other callable that has a name."""

    @property
    def name(self) -> str:
        """The name of the step."""

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Return the result for a batch."""


class CpuClock:
    """Measures the CPU seconds of this process, by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.process_time()

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Add the CPU time of a block to a stage."""
        started = time.process_time()
        try:
            yield
        finally:
            spent = time.process_time() - started
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent

    def shares(self, rest: str) -> dict[str, float]:
        """Return the seconds by stage; `rest` is the name for the remaining time of the clock."""
        spent = time.process_time() - self._started
        whole = {rest: spent - sum(self.seconds.values()), **self.seconds}
        return {stage: round(seconds, 4) for stage, seconds in whole.items()}


def apply_steps(
    batch: pa.RecordBatch, steps: Sequence[NamedStep], clock: CpuClock
) -> tuple[pa.RecordBatch, list[FilterResult]]:
    """Return the rows that pass every step, and the rows that each step drops, with reasons.

    Args:
        batch: The rows.
        steps: The steps in order.
        clock: Measures the time of each step.
    """
    dropped = []
    for step in steps:
        with clock.time(step.name):
            batch, result = split_result(step(batch))
        dropped.append(result)
    return batch, dropped


def split_result(result: FilterResult) -> tuple[pa.RecordBatch, FilterResult]:
    """Return the rows that are kept, and the other rows with their reasons."""
    if result.reasons.null_count == len(result.reasons):
        return result.batch, FilterResult(result.batch.slice(0, 0), result.reasons.slice(0, 0))
    dropped = pc.is_valid(result.reasons)
    return result.batch.filter(pc.invert(dropped)), FilterResult(
        result.batch.filter(dropped), result.reasons.filter(dropped)
    )


def finish_filter(batch: pa.RecordBatch, reasons: pa.Array, *, measure_only: bool) -> FilterResult:
    """Return the result of a step that measures; deferred reasons of earlier steps take precedence.

    Args:
        batch: The rows.
        reasons: The reasons of the step itself.
        measure_only: Whether to defer the reasons to the next step.
    """
    if DEFERRED_REASON in batch.schema.names:
        reasons = pc.coalesce(batch[DEFERRED_REASON], reasons)
        batch = batch.drop_columns([DEFERRED_REASON])
    if not measure_only:
        return FilterResult(batch, reasons)
    return FilterResult(batch.append_column(DEFERRED_REASON, reasons), no_reasons(batch))


def no_reasons(batch: pa.RecordBatch) -> pa.Array:
    """Return the reasons, all of them null, of a step that keeps every row."""
    return pa.nulls(batch.num_rows, pa.string())


def reasons_where(dropped: Iterable[bool], reason: str) -> pa.Array:
    """Return the reasons of all rows: one reason for those that are dropped, null for the rest."""
    return pa.array([reason if drop else None for drop in dropped], pa.string())


def replace_texts(
    batch: pa.RecordBatch, name: str, texts: Sequence[str], *, changed: np.ndarray
) -> pa.RecordBatch:
    """Return the batch with the changed rows of a text column replaced by those of `texts`."""
    if not changed.any():
        return batch
    new = pa.array([texts[row] for row in np.flatnonzero(changed).tolist()], pa.large_string())
    column = pc.replace_with_mask(batch[name], pa.array(changed), new)
    return batch.set_column(batch.schema.get_field_index(name), name, column)
