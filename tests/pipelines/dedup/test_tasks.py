from pathlib import Path

import numpy as np
import pytest

from pipelines.dedup.components import Edges
from pipelines.dedup.drops import EXACT, NEAR, drop_path, drop_table
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.tasks import Task, TaskRecord, prepare_task
from pipelines.engine.records import read_record
from pipelines.segments.plan import Plan
from shards.storage.files import crc32c
from shards.tables import open_table, write_table
from tests.pipelines.made_segments import (
    Doc,
    distinct_texts,
    equal_texts,
    exact_dedup,
    write_segments,
)


@pytest.fixture(scope="module")
def parts() -> list[list[Doc]]:
    return equal_texts(np.random.default_rng(21))


@pytest.mark.parametrize("ranges", [1, 2, 8])
def test_exact_dedup_keeps_one_document_of_each_text(
    tmp_path: Path, parts: list[list[Doc]], ranges: int
) -> None:
    work = tmp_path / ".work"
    plan = write_segments(work, parts)
    records = exact_dedup(tmp_path, plan, ranges=ranges)
    orders = {
        number: open_table(work / "map" / f"s{number}.documents")["order"].to_pylist()
        for number in range(len(parts))
    }
    dropped = set()
    for index in range(ranges):
        for drop in open_table(drop_path(work, f"dedup/d{index}")).to_pylist():
            assert orders[drop["segment"]][drop["row"]] == drop["order"]
            assert drop["reason"] == EXACT
            dropped.add((drop["segment"], drop["order"]))
    everything = {(number, order) for number in orders for order in orders[number]}
    assert everything - dropped == distinct_texts(parts).keys()
    assert len(dropped) > 10
    assert sum(record.drops for record in records) == len(dropped)


def test_signatures_are_every_text_once_by_hash(tmp_path: Path, parts: list[list[Doc]]) -> None:
    rows: list[tuple[int, ...]] = []
    plan = write_segments(tmp_path / ".work", parts)
    for record in exact_dedup(tmp_path, plan, ranges=4):
        (entry,) = record.signatures
        path = tmp_path / entry.path
        assert (entry.bytes, entry.crc32c) == (path.stat().st_size, crc32c(path))
        table = open_table(path)
        assert entry.rows == len(table)
        rows += [tuple(row.values()) for row in table.to_pylist()]
    assert rows == sorted(
        (doc.hash >> 64, doc.hash % 2**64, doc.order) for doc in distinct_texts(parts).values()
    )


def signed(order: int, *, bands: tuple[int, ...], position: int) -> Doc:
    """A document whose first bands have these values; its slots are those of all others."""
    values = np.arange(NUM_BANDS, dtype=np.uint64) + np.uint64(1000 * order)
    values[: len(bands)] = bands
    return Doc(order=order, position=position, signature=values.tobytes() + bytes(NUM_SLOTS))


@pytest.fixture
def chain(tmp_path: Path) -> Plan:
    """Orders 1 and 3 share band 0, 3 and 2 band 1; each stands in a segment of its own."""
    docs = [signed(1, bands=(7, 1), position=0), signed(3, bands=(7, 8), position=0)]
    docs.append(signed(2, bands=(9, 8), position=0))
    return write_segments(tmp_path / ".work", [[doc] for doc in docs], sources=["a", "a", "b"])


def near_dedup(output: Path, plan: Plan, band: int, *, edges: bool = False) -> TaskRecord:
    task = Task(
        name=f"band{band}",
        phase="dedup",
        plan=plan.name,
        band=band,
        threshold=0.7,
        edges=edges,
    )
    prepare_task(output)(task)
    return read_record(TaskRecord, output / ".work" / "dedup" / f"{task.name}.json")


def test_near_dedup_of_a_band_writes_drops_or_edges(tmp_path: Path, chain: Plan) -> None:
    record = near_dedup(tmp_path, chain, 0)
    assert (record.drops, record.compared, record.failed) == (1, 1, 0)
    assert record.groups["2"] == 1
    drops = open_table(drop_path(tmp_path / ".work", "dedup/band0")).to_pylist()
    assert drops == [{"order": 3, "segment": 1, "row": 0, "reason": NEAR, "own": 1}]
    assert not (tmp_path / ".work" / "dedup" / "band0.edges").exists()
    assert near_dedup(tmp_path, chain, 0, edges=True).drops == 0
    edges = Edges.of(open_table(tmp_path / ".work" / "dedup" / "band0.edges"))
    assert (edges.order.tolist(), edges.to_order.tolist()) == ([3], [1])
    assert (edges.place.tolist(), edges.to_place.tolist()) == ([1 << 32], [0])


def test_components_join_a_chain_to_its_smallest_document(tmp_path: Path, chain: Plan) -> None:
    for band in (0, 1):
        near_dedup(tmp_path, chain, band, edges=True)
    inputs = ("dedup/band0", "dedup/band1")
    prepare_task(tmp_path)(Task(name="all", phase="components", plan=chain.name, inputs=inputs))
    record = read_record(TaskRecord, tmp_path / ".work" / "components" / "all.json")
    assert (record.drops, record.groups["3"]) == (2, 1)
    drops = open_table(drop_path(tmp_path / ".work", "components/all"))
    assert drops["order"].to_pylist() == [2, 3]


def test_drops_name_each_document_once_and_are_counted_by_source(
    tmp_path: Path, chain: Plan
) -> None:
    work = tmp_path / ".work"
    for name, segments, rows, reason in (
        ("near", [1, 2], [0, 0], NEAR),
        ("exact", [0, 1], [0, 0], EXACT),
    ):
        columns = (np.array(segments, np.uint32), np.array(rows, np.uint32))
        orders = np.array([{0: 1, 1: 3, 2: 2}[number] for number in segments], np.uint64)
        write_table(drop_path(work, f"dedup/{name}"), drop_table(orders, *columns, reason=reason))
    inputs = ("dedup/near", "dedup/exact")
    prepare_task(tmp_path)(Task(name="d", phase="drops", plan=chain.name, inputs=inputs))
    record = read_record(TaskRecord, work / "drops" / "d.json")
    assert record.dropped == {
        "a": {"duplicate": 2, "near-duplicate": 0},
        "b": {"duplicate": 0, "near-duplicate": 1},
    }
    assert record.known == {key: {"duplicate": 0, "near-duplicate": 0} for key in "ab"}
    table = open_table(drop_path(work, "drops/d"))
    assert table["order"].to_pylist() == [1, 2, 3]
    assert record.files[0].rows == 3
