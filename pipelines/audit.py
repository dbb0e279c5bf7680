"""The audit table: one row for everything read, whatever became of it, and its sums."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.document import DROPPED, KEPT, NAME, QUARANTINED, REJECTS

AUDIT = pa.schema(
    [
        ("order", pa.uint64()),
        ("path", NAME),
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("ordinal", pa.int32()),
        ("verdict", NAME),
        ("reason", NAME),
        ("bytes", pa.int64()),
        ("repaired", pa.bool_()),
        ("language", NAME),
        ("score", pa.float32()),
        ("tokens", pa.int32()),
    ]
)
"""One row for everything read. Columns of stages that a record did not reach are null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How much of what was read met one verdict for one reason ("" when kept)."""

    verdict: str
    reason: str
    rows: int
    bytes: int


def tally(audit: pa.Table) -> tuple[Tally, ...]:
    """Return rows and bytes per verdict and reason of an audit table, sorted by both."""
    plain = pa.table(
        {
            "verdict": audit["verdict"].cast(pa.string()),
            "reason": audit["reason"].cast(pa.string()).fill_null(""),
            "bytes": audit["bytes"],
        }
    )
    sums = plain.group_by(["verdict", "reason"]).aggregate([("bytes", "sum"), ("bytes", "count")])
    return tuple(
        Tally(
            verdict=row["verdict"],
            reason=row["reason"],
            rows=row["bytes_count"],
            bytes=row["bytes_sum"],
        )
        for row in sums.sort_by([("verdict", "ascending"), ("reason", "ascending")]).to_pylist()
    )


def audit_rows(rows: pa.RecordBatch | pa.Table, reasons: pa.Array, *, relative: str) -> pa.Table:
    """Return rows of any stage as audit rows; columns of later stages are null."""
    verdicts = [
        KEPT if reason is None else QUARANTINED if reason in REJECTS else DROPPED
        for reason in reasons.to_pylist()
    ]
    known = {
        "path": pa.nulls(rows.num_rows, pa.large_string()).fill_null(relative),
        "verdict": pa.array(verdicts, pa.large_string()),
        "reason": reasons,
        "tokens": _lengths(rows),
    }
    lost = pa.array([verdict == QUARANTINED for verdict in verdicts], pa.bool_())
    known["tokens"] = pc.if_else(lost, pa.scalar(None, pa.int32()), known["tokens"])
    columns = [
        known[field.name]
        if field.name in known
        else rows[field.name]
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in AUDIT
    ]
    return pa.table(
        [_cast(values, field.type) for values, field in zip(columns, AUDIT, strict=True)],
        schema=AUDIT,
    )


def _lengths(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    if "tokens" not in rows.schema.names:
        return pa.nulls(rows.num_rows, pa.int32())
    tokens = rows["tokens"]
    return pc.list_value_length(tokens) if pa.types.is_large_list(tokens.type) else tokens


def _cast(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(values.type):
        values = values.cast(pa.large_string()).dictionary_encode()
    return values.cast(kind)
