import pyarrow as pa

from pipelines.segments.audit import AUDIT, Tally, audit_rows, tally
from pipelines.segments.rows import REJECTS
from tests.pipelines.made_segments import Doc, judged


def test_the_reason_decides_the_verdict() -> None:
    reasons = [None, "too-short", "language", "duplicate", *sorted(REJECTS)]
    batch, _ = judged([Doc(order=at, position=at) for at in range(len(reasons))])
    found = audit_rows(batch, pa.array(reasons, pa.string()), relative="a/b.json")
    assert found.schema == AUDIT
    verdicts = ["kept", *["dropped"] * 3, *["quarantined"] * len(REJECTS)]
    assert found["verdict"].to_pylist() == verdicts
    assert found["reason"].to_pylist() == reasons
    assert found["order"].to_pylist() == batch["order"].to_pylist()


def test_tokens_are_counted_as_lists_or_lengths() -> None:
    batch, _ = judged([Doc(order=1, tokens=[5, 6, 7]), Doc(order=2, tokens=[])])
    none = pa.nulls(2, pa.string())
    lengths = batch["tokens"].value_lengths().cast(pa.int32())
    counted = batch.set_column(batch.schema.get_field_index("tokens"), "tokens", lengths)
    for rows in (batch, counted, pa.Table.from_batches([counted])):
        assert audit_rows(rows, none, relative="x")["tokens"].to_pylist() == [3, 0]
    before = batch.drop_columns(["tokens", "score", "language"])
    assert audit_rows(before, none, relative="x")["tokens"].to_pylist() == [None, None]


def test_no_rows_have_the_columns_too() -> None:
    batch, _ = judged([])
    assert audit_rows(batch, pa.array([], pa.string()), relative="x").equals(AUDIT.empty_table())


def test_tally_adds_rows_bytes_and_tokens_by_verdict_and_reason() -> None:
    reasons = ["too-short", None, "nul", "too-short", None, "language"]
    batch, _ = judged([Doc(order=at, position=10 * at) for at in range(6)])  # bytes 100 + 10 at
    audit = audit_rows(batch, pa.array(reasons, pa.string()), relative="x")
    wanted = (
        Tally(verdict="dropped", reason="language", rows=1, bytes=150, tokens=2),
        Tally(verdict="dropped", reason="too-short", rows=2, bytes=230, tokens=4),
        Tally(verdict="kept", reason="", rows=2, bytes=250, tokens=4),
        Tally(verdict="quarantined", reason="nul", rows=1, bytes=120),
    )
    assert tally(audit) == wanted
    assert tally(pa.concat_tables([audit.slice(3), audit.slice(0, 3)])) == wanted
    assert tally(AUDIT.empty_table()) == ()
