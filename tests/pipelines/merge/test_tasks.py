from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.dedup.drops import drop_path
from pipelines.dedup.tasks import TEXT, DedupRecord, DedupTask, prepare_dedup
from pipelines.engine.records import read_record
from pipelines.merge.tasks import MergeRecord, MergeTask, prepare_merge
from pipelines.segments.audit import Tally
from pipelines.segments.plan import Plan
from pipelines.segments.tables import open_table
from shards.manifest import TRAIN, VALIDATION
from shards.storage.files import crc32c
from tests.pipelines.made_segments import Doc, random_docs, write_segments

SOURCES = ["b", "a", "b", "a"]


@pytest.fixture(scope="module")
def parts() -> list[list[Doc]]:
    """Four segments: two sources, texts that stand in several, one segment with nothing kept."""
    rng = np.random.default_rng(21)
    found = []
    for size in (60, 50, 40):
        hashes = rng.integers(1, 90, size).tolist()
        found.append(
            [
                Doc(
                    order=doc.order,
                    holdout=doc.holdout,
                    tokens=doc.tokens,
                    position=doc.position,
                    hash=((value * 0x9E3779B97F4A7C15) % 2**64 << 64) + value % 3,
                    reason="too-short" if value == 7 else None,
                )
                for doc, value in zip(random_docs(rng, size), hashes, strict=True)
            ]
        )
    return [*found, [Doc(order=5, reason="language")]]


@pytest.fixture
def plan(tmp_path: Path, parts: list[list[Doc]]) -> Plan:
    return write_segments(tmp_path / ".work", parts, sources=SOURCES)


def survivors(parts: list[list[Doc]]) -> dict[tuple[int, int], Doc]:
    """By segment and order, what exact dedup over everything leaves."""
    best: dict[int, tuple[int, int]] = {}
    docs = {}
    for at, part in enumerate(parts):
        for doc in part:
            if doc.reason is None:
                docs[at, doc.order] = doc
                best[doc.hash] = min(best.get(doc.hash, (2**64, 0)), (doc.order, at))
    return {key: doc for key, doc in docs.items() if best[doc.hash] == (key[1], key[0])}


def dedup(output: Path, plan: Plan, ranges: int) -> list[DedupRecord]:
    run = prepare_dedup(output)
    found = []
    for index in range(ranges):
        task = DedupTask(
            name=f"d{index}",
            plan=plan.name,
            band=TEXT,
            index=index,
            ranges=ranges,
            threshold=0.0,
            drops=True,
            linked=0,
        )
        run(task)
        found.append(read_record(DedupRecord, output / ".work" / "dedup" / f"d{index}.json"))
    return found


def merge(
    output: Path, plan: Plan, source: str, *, total: int, ranges: int = 1, holdout: int = 0
) -> list[MergeRecord]:
    """The records of all train shards, and with a holdout of one validation shard."""
    run = prepare_merge(output)
    found = []
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
            drops=tuple(f"dedup/d{at}" for at in range(ranges)),
        )
        run(task)
        found.append(read_record(MergeRecord, output / ".work" / "merge" / f"{task.name}.json"))
    return found


@pytest.mark.parametrize("ranges", [1, 2, 8])
def test_dedup_leaves_one_document_of_each_text(
    tmp_path: Path, parts: list[list[Doc]], plan: Plan, ranges: int
) -> None:
    records = dedup(tmp_path, plan, ranges)
    gone = set()
    for index in range(ranges):
        table = open_table(drop_path(tmp_path / ".work", f"dedup/d{index}"))
        for drop in table.to_pylist():
            stem = tmp_path / ".work" / "map" / f"s{drop['segment']}.documents"
            assert open_table(stem)["order"][drop["row"]].as_py() == drop["order"]
            gone.add((drop["segment"], drop["order"]))
    kept_in_segments = {
        (at, order)
        for at in range(4)
        for order in open_table(tmp_path / ".work" / "map" / f"s{at}.documents")[
            "order"
        ].to_pylist()
    }
    assert kept_in_segments - gone == survivors(parts).keys()
    assert len(gone) > 10
    assert sum(record.drops for record in records) == len(gone)


def test_signatures_are_every_text_once_by_hash(
    tmp_path: Path, parts: list[list[Doc]], plan: Plan
) -> None:
    found = []
    for record in dedup(tmp_path, plan, 4):
        (entry,) = record.signatures
        path = tmp_path / entry.path
        assert (entry.bytes, entry.crc32c) == (path.stat().st_size, crc32c(path))
        table = open_table(path)
        assert entry.rows == len(table)
        found += [tuple(row.values()) for row in table.to_pylist()]
    wanted = sorted(
        (doc.hash >> 64, doc.hash % 2**64, doc.order) for doc in survivors(parts).values()
    )
    assert found == wanted


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
    dedup(tmp_path, plan, 2)
    left = survivors(parts)
    for source in ("a", "b"):
        records = merge(tmp_path, plan, source, total=total, ranges=2, holdout=holdout)
        docs = [doc for (at, _), doc in left.items() if SOURCES[at] == source]
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
def test_audit_rows_are_told_once_with_their_last_verdict(
    tmp_path: Path, parts: list[list[Doc]], plan: Plan, total: int
) -> None:
    dedup(tmp_path, plan, 2)
    left = survivors(parts)
    for source in ("a", "b"):
        records = merge(tmp_path, plan, source, total=total, ranges=2, holdout=2**61)
        rows = [
            row
            for record in records
            for table in record.audit
            for row in pq.read_table(tmp_path / table.path).to_pylist()
        ]
        assert [row["order"] for row in rows] == sorted(
            doc.order for at, part in enumerate(parts) if SOURCES[at] == source for doc in part
        )
        kept = {row["order"] for row in rows if row["verdict"] == "kept"}
        assert kept == {order for at, order in left if SOURCES[at] == source}
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
    (found,) = record.tallies
    assert found == Tally(verdict="dropped", reason="language", rows=1, bytes=101, tokens=2)
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

    dedup(tmp_path, plan, 1)
    merge(tmp_path, plan, "a", total=2, holdout=2**61)
    before = content()
    dedup(tmp_path, plan, 1)
    merge(tmp_path, plan, "a", total=2, holdout=2**61)
    assert content() == before
    assert any(name.endswith("validation-00000.bin") for name in before)
