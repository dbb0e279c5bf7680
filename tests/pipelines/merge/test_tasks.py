from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.records import read_record
from pipelines.merge.tasks import MergeRecord, MergeTask, prepare_merge
from pipelines.segments.audit import Tally
from pipelines.segments.plan import Plan
from shards.manifest import TRAIN, VALIDATION
from tests.pipelines.made_segments import (
    Doc,
    distinct_texts,
    equal_texts,
    exact_dedup,
    write_segments,
)

SOURCES = ["b", "a", "b", "a"]


@pytest.fixture(scope="module")
def parts() -> list[list[Doc]]:
    return equal_texts(np.random.default_rng(21))


@pytest.fixture
def plan(tmp_path: Path, parts: list[list[Doc]]) -> Plan:
    return write_segments(tmp_path / ".work", parts, sources=SOURCES)


def merge(
    output: Path, plan: Plan, source: str, *, total: int, ranges: int = 1, holdout: int = 0
) -> list[MergeRecord]:
    """The records of all train shards, and with a holdout of one validation shard."""
    run = prepare_merge(output)
    records = []
    jobs = [(TRAIN, index, total) for index in range(total)]
    jobs += [(VALIDATION, 0, 1)] if holdout else []
    for split, index, shards in jobs:
        task = MergeTask(
            name=f"{source}-{split}-{index}",
            plan=plan.name,
            source=source,
            split=split,
            index=index,
            total=shards,
            holdout=holdout,
            drops=tuple(f"dedup/d{number}" for number in range(ranges)),
        )
        run(task)
        records.append(read_record(MergeRecord, output / ".work" / "merge" / f"{task.name}.json"))
    return records


def read_shards(output: Path, records: list[MergeRecord], field: str) -> tuple[list[int], bytes]:
    orders: list[int] = []
    tokens = b""
    for record in records:
        for shard in getattr(record, field):
            table = pa.ipc.open_file(output / f"{shard.path}.arrow").read_all()
            orders += table["order"].to_pylist()
            tokens += (output / f"{shard.path}.bin").read_bytes()
    return orders, tokens


@pytest.mark.parametrize("holdout", [0, 2**61])
@pytest.mark.parametrize("total", [1, 3, 8])
def test_shards_together_are_the_source_in_order(
    tmp_path: Path, parts: list[list[Doc]], plan: Plan, total: int, holdout: int
) -> None:
    exact_dedup(tmp_path, plan, ranges=2)
    kept = distinct_texts(parts)
    for source in ("a", "b"):
        records = merge(tmp_path, plan, source, total=total, ranges=2, holdout=holdout)
        docs = [doc for (number, _), doc in kept.items() if SOURCES[number] == source]
        docs.sort(key=lambda doc: doc.order)
        for field, chosen in (
            ("shards", [doc for doc in docs if doc.holdout >= holdout]),
            ("validation", [doc for doc in docs if doc.holdout < holdout]),
        ):
            orders, tokens = read_shards(tmp_path, records, field)
            assert orders == [doc.order for doc in chosen]
            ids = np.array([token for doc in chosen for token in doc.tokens], "<u2")
            assert tokens == ids.tobytes()
            assert bool(chosen) == (field == "shards" or holdout > 0)
        names = [shard.path for record in records for shard in record.shards]
        assert names == [f"{plan.generation}/{source}/{index:05}" for index in range(total)]


@pytest.mark.parametrize("total", [1, 3])
def test_audit_rows_are_written_once_with_their_last_verdict(
    tmp_path: Path, parts: list[list[Doc]], plan: Plan, total: int
) -> None:
    exact_dedup(tmp_path, plan, ranges=2)
    kept = distinct_texts(parts)
    for source in ("a", "b"):
        records = merge(tmp_path, plan, source, total=total, ranges=2, holdout=2**61)
        rows = [
            row
            for record in records
            for table in record.audit
            for row in pq.read_table(tmp_path / table.path).to_pylist()
        ]
        assert [row["order"] for row in rows] == sorted(
            doc.order
            for number, part in enumerate(parts)
            if SOURCES[number] == source
            for doc in part
        )
        orders = {row["order"] for row in rows if row["verdict"] == "kept"}
        assert orders == {order for number, order in kept if SOURCES[number] == source}
        tallied = [tally for record in records for tally in record.tallies]
        assert sum(tally.rows for tally in tallied) == len(rows)
        assert sum(tally.bytes for tally in tallied) == sum(row["bytes"] for row in rows)
        assert sum(t.rows for t in tallied if t.reason == "duplicate") == sum(
            row["reason"] == "duplicate" for row in rows
        )
        assert not any(record.audit for record in records if record.validation)


def test_a_source_without_documents_has_audit_rows_and_no_shards(tmp_path: Path) -> None:
    parts = [[Doc(order=3, reason="language", position=1)], [Doc(order=4)]]
    plan = write_segments(tmp_path / ".work", parts, sources=["a", "b"])
    (record,) = merge(tmp_path, plan, "a", total=1, ranges=0)
    assert record.shards == ()
    (tally,) = record.tallies
    assert tally == Tally(verdict="dropped", reason="language", rows=1, bytes=101, tokens=2)
    assert record.audit[0].rows == 1


def test_tasks_are_called_by_what_they_do() -> None:
    task = MergeTask(
        name="n", plan="p", source="web", split="train", index=3, total=8, holdout=0, drops=()
    )
    assert str(task) == "merge of train shard 3 of 8 of web"


def test_a_task_that_is_run_again_leaves_the_same_bytes(tmp_path: Path, plan: Plan) -> None:
    def content() -> dict[str, bytes]:
        return {
            path.relative_to(tmp_path).as_posix(): path.read_bytes()
            for path in tmp_path.rglob("*")
            if path.is_file()
        }

    exact_dedup(tmp_path, plan, ranges=1)
    merge(tmp_path, plan, "a", total=2, holdout=2**61)
    before = content()
    exact_dedup(tmp_path, plan, ranges=1)
    merge(tmp_path, plan, "a", total=2, holdout=2**61)
    assert content() == before
    assert any(name.endswith("validation-00000.bin") for name in before)
