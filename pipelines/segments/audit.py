"""The audit table, which has one row for every record read, and its sums."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.segments.rows import CATEGORICAL, DROPPED, KEPT, QUARANTINE_REASONS, QUARANTINED

AUDIT = pa.schema(
    [
        ("order", pa.uint64()),
        ("path", CATEGORICAL),
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("ordinal", pa.int32()),
        ("group", CATEGORICAL),
        ("verdict", CATEGORICAL),
        ("reason", CATEGORICAL),
        ("bytes", pa.int64()),
        ("repaired", pa.bool_()),
        ("language", CATEGORICAL),
        ("score", pa.float32()),
        ("tokens", pa.int32()),
    ]
)
"""One row for every record read. Columns of steps that a record did not reach are null.

The metrics of a run's steps follow as further columns (`audit_schema`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Sums over the rows of one group, verdict and reason ("" if kept)."""

    verdict: str
    reason: str
    rows: int
    bytes: int
    group: str = ""
    tokens: int = 0
    """The number of tokens of the rows that were tokenized."""


def tally(audit: pa.Table) -> tuple[Tally, ...]:
    """Return the sums of an audit table for each group, verdict and reason, sorted by all three."""
    plain = pa.table(
        {
            "group": audit["group"].cast(pa.string()),
            "verdict": audit["verdict"].cast(pa.string()),
            "reason": audit["reason"].cast(pa.string()).fill_null(""),
            "bytes": audit["bytes"],
            "tokens": audit["tokens"].cast(pa.int64()).fill_null(0),
        }
    )
    names = ["group", "verdict", "reason"]
    sums = plain.group_by(names).aggregate(
        [("bytes", "sum"), ("bytes", "count"), ("tokens", "sum")]
    )
    return tuple(
        Tally(
            group=row["group"],
            verdict=row["verdict"],
            reason=row["reason"],
            rows=row["bytes_count"],
            bytes=row["bytes_sum"],
            tokens=row["tokens_sum"],
        )
        for row in sums.sort_by([(name, "ascending") for name in names]).to_pylist()
    )


def audit_schema(metrics: Iterable[pa.Field]) -> pa.Schema:
    """Return the columns of a run's audit table: AUDIT and the metrics of the run's steps."""
    return pa.schema([*AUDIT, *metrics])


def audit_rows(
    rows: pa.RecordBatch | pa.Table,
    reasons: pa.Array,
    *,
    schema: pa.Schema = AUDIT,
) -> pa.Table:
    """Return the rows of any step as audit rows; columns of later steps are null.

    Args:
        rows: The rows.
        reasons: Why each row was dropped, null where it was kept.
        schema: The result of `audit_schema` for the run.
    """
    verdicts = [
        KEPT if reason is None else QUARANTINED if reason in QUARANTINE_REASONS else DROPPED
        for reason in reasons.to_pylist()
    ]
    known = {
        "verdict": pa.array(verdicts, pa.large_string()),
        "reason": reasons,
        "tokens": _token_counts(rows),
    }
    quarantined = pa.array([verdict == QUARANTINED for verdict in verdicts], pa.bool_())
    known["tokens"] = pc.if_else(quarantined, pa.scalar(None, pa.int32()), known["tokens"])
    columns = [
        known[field.name]
        if field.name in known
        else rows[field.name]
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(
        [_cast(values, field.type) for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _token_counts(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    if "tokens" not in rows.schema.names:
        return pa.nulls(rows.num_rows, pa.int32())
    tokens = rows["tokens"]
    return pc.list_value_length(tokens) if pa.types.is_large_list(tokens.type) else tokens


def _cast(values: pa.Array | pa.ChunkedArray, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_dictionary(to) and not pa.types.is_dictionary(values.type):
        values = values.cast(pa.large_string()).dictionary_encode()
    return values.cast(to)
