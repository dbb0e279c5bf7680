from pathlib import Path

import numpy as np
import pytest

from pipelines.dedup.components import Edges
from pipelines.dedup.drops import EXACT, NEAR, drop_path, drop_table
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.near import ALL, edge_path
from pipelines.dedup.tasks import (
    FIRST,
    LARGE,
    LAST,
    SMALL,
    DedupRecord,
    DedupTask,
    DropsRecord,
    DropsTask,
    MatesRecord,
    MatesTask,
    StarRecord,
    StarTask,
    prepare_dedup,
    prepare_drops,
    prepare_links,
)
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


def near_dedup(output: Path, plan: Plan, band: int) -> DedupRecord:
    task = DedupTask(
        name=f"band{band}",
        plan=plan.name,
        band=band,
        index=0,
        ranges=1,
        threshold=0.7,
        drops=True,
        linked=ALL,
    )
    prepare_dedup(output)(task)
    return read_record(DedupRecord, output / ".work" / "dedup" / f"{task.name}.json")


def test_near_dedup_of_a_band_writes_drops_and_links(tmp_path: Path, chain: Plan) -> None:
    record = near_dedup(tmp_path, chain, 0)
    assert (record.drops, record.links, record.compared, record.failed) == (1, 1, 1, 0)
    assert record.groups["2"] == 1
    drops = open_table(drop_path(tmp_path / ".work", "dedup/band0")).to_pylist()
    assert drops == [{"order": 3, "segment": 1, "row": 0, "reason": NEAR, "own": 1}]
    links = Edges.of(open_table(edge_path(tmp_path / ".work", "dedup/band0")))
    assert (links.order.tolist(), links.to_order.tolist()) == ([3], [1])
    assert (links.place.tolist(), links.to_place.tolist()) == ([1 << 32], [0])


def star(output: Path, plan: Plan, kind: str, inputs: tuple[str, ...]) -> StarRecord:
    task = StarTask(name=kind, plan=plan.name, kind=kind, index=0, ranges=1, inputs=inputs)
    prepare_links(output)(task)
    return read_record(StarRecord, output / ".work" / "components" / f"{kind}.json")


def test_passes_join_a_chain_to_its_smallest_document(tmp_path: Path, chain: Plan) -> None:
    inputs = tuple(f"dedup/band{band}" for band in (0, 1) if near_dedup(tmp_path, chain, band))
    first = star(tmp_path, chain, FIRST, inputs)
    large = star(tmp_path, chain, LARGE, ("components/first",))
    small = star(tmp_path, chain, SMALL, ("components/large",))
    assert len({record.checksum for record in (first, large, small)}) == 3
    last = star(tmp_path, chain, LAST, ("components/small",))
    assert (last.drops, last.groups["3"]) == (2, 1)
    drops = open_table(drop_path(tmp_path / ".work", "components/last"))
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
    prepare_drops(tmp_path)(DropsTask(name="d", plan=chain.name, index=0, ranges=1, inputs=inputs))
    record = read_record(DropsRecord, work / "drops" / "d.json")
    assert record.dropped == {
        "a": {"duplicate": 2, "near-duplicate": 0},
        "b": {"duplicate": 0, "near-duplicate": 1},
    }
    assert record.known == {key: {"duplicate": 0, "near-duplicate": 0} for key in "ab"}
    table = open_table(drop_path(work, "drops/d"))
    assert table["order"].to_pylist() == [1, 2, 3]
    assert record.files[0].rows == 3


def test_mates_are_counted_that_are_dropped_themselves(tmp_path: Path, chain: Plan) -> None:
    """Order 3 is similar to 1 and 2: it has a kept mate unless both are dropped."""
    inputs = tuple(f"dedup/band{band}" for band in (0, 1) if near_dedup(tmp_path, chain, band))
    zero = np.zeros(2, np.uint32)
    both = drop_table(np.array([1, 2], np.uint64), np.array([0, 2], np.uint32), zero, reason=NEAR)
    for name, drops, alone in (("one", both[:1], 0), ("both", both, 1)):
        write_table(drop_path(tmp_path / ".work", f"drops/{name}"), drops)
        task = MatesTask(
            name=name, plan=chain.name, linked=ALL, inputs=inputs, drops=(f"drops/{name}",)
        )
        prepare_links(tmp_path)(task)
        record = read_record(MatesRecord, tmp_path / ".work" / "mates" / f"{name}.json")
        assert (record.documents, record.alone) == (1, alone)
