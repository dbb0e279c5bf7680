"""Dedup of whole small corpora against what its rules say, written out in plain Python."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup import exact as dedup
from pipelines.dedup import phases as dedup_phases
from pipelines.dedup.drops import drop_path
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.phases import Dedup, Deduplicated
from pipelines.engine.phases import Phases
from shards.range import EVERYTHING, Range
from shards.tables import open_table
from tests.pipelines.dedup.rules import (
    EXACT,
    NEAR,
    Model,
    check_account,
    deduplicated,
    made_up,
    spread,
    verdicts,
)
from tests.pipelines.inline import InlineRunner
from tests.pipelines.made_segments import Doc, write_segments

SIGNED = bytes(8 * NUM_BANDS + NUM_SLOTS)
"""A signature."""

CASES = [
    (seed, sizes, threshold)
    for seed, sizes in enumerate([(40,), (30, 30), (30, 1, 25, 24), (6,) * 12, (80, 40)])
    for threshold in (0.0, 0.7)
]


@pytest.mark.parametrize("clusters", ["local", "components"])
@pytest.mark.parametrize(("seed", "sizes", "threshold"), CASES)
def test_what_is_dropped_is_what_the_rules_say(
    tmp_path: Path, seed: int, sizes: tuple[int, ...], threshold: float, clusters: str
) -> None:
    parts = made_up(np.random.default_rng(seed), sizes)
    sources = ["ab"[at % 2] for at in range(len(parts))]
    plan = write_segments(tmp_path / ".work", parts, sources=sources)
    found, _ = deduplicated(tmp_path, plan, threshold=threshold, clusters=clusters)
    model = Model(parts, threshold)
    expected = getattr(model, clusters)()
    final = verdicts(tmp_path, plan, found)
    read = {
        (at, doc.position): doc.reason
        for at, part in enumerate(parts)
        for doc in part
        if doc.reason
    }
    assert final == {**expected, **read}
    counts = list(expected.values())
    assert min(counts.count(EXACT), counts.count(NEAR)) > 2
    check_account(tmp_path, plan, found)


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    families=st.integers(1, 6),
    cuts=st.lists(st.lists(st.integers(0, 59), max_size=12), min_size=1, max_size=3),
    threshold=st.sampled_from([0.0, 0.7]),
    clusters=st.sampled_from(["local", "components"]),
)
def test_which_documents_share_a_segment_decides_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    families: int,
    cuts: list[list[int]],
    threshold: float,
    clusters: str,
) -> None:
    """Cut anywhere, with the documents in any order, each gets the verdict of one segment's."""
    rng = np.random.default_rng(seed)
    (docs,) = spread(rng, made_up(rng, (60,), families=families))
    model = Model([docs], threshold)
    expected = {position: why for (_, position), why in getattr(model, clusters)().items()}
    expected |= {doc.position: doc.reason for doc in docs if doc.reason}
    for cut in cuts:
        mixed = [docs[at] for at in rng.permutation(len(docs)).tolist()]
        edges = sorted({0, *cut, len(docs)})
        parts = [mixed[low:high] for low, high in pairwise(edges)]
        signed = Doc(order=1, position=99, reason="empty", signature=docs[0].signature or SIGNED)
        output = tmp_path_factory.mktemp("cut")
        plan = write_segments(output / ".work", [[*part, signed] for part in parts])
        found, _ = deduplicated(output, plan, threshold=threshold, clusters=clusters)
        final = verdicts(output, plan, found)
        assert {at: why for (_, at), why in final.items() if at != 99} == expected
        check_account(output, plan, found)


@pytest.mark.parametrize("clusters", ["local", "components"])
@pytest.mark.parametrize("threshold", [0.0, 0.7])
def test_the_number_of_ranges_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: float, clusters: str
) -> None:
    parts = made_up(np.random.default_rng(7), (30, 12, 24))
    plan = write_segments(tmp_path / "one" / ".work", parts)
    write_segments(tmp_path / "many" / ".work", parts)
    found, tasks = deduplicated(tmp_path / "one", plan, threshold=threshold, clusters=clusters)
    monkeypatch.setattr(dedup, "ROWS_PER_TASK", 12)
    monkeypatch.setattr(dedup, "BLOCK_ROWS", 5)
    monkeypatch.setattr("pipelines.dedup.near.PAIRS_AT_ONCE", 3)
    monkeypatch.setattr("pipelines.dedup.bands.PAIRS_AT_ONCE", 3)
    monkeypatch.setattr(dedup_phases, "BAND_ROWS_PER_TASK", 12)
    monkeypatch.setattr(dedup_phases, "DROPS_PER_TASK", 12)
    many, more = deduplicated(tmp_path / "many", plan, threshold=threshold, clusters=clusters)
    assert len(more) > 3 * len(tasks)
    assert len(many.drops) > 1
    assert verdicts(tmp_path / "one", plan, found) == verdicts(tmp_path / "many", plan, many)
    for name in ("exact", "near"):
        assert found.figures[name] == many.figures[name]
    check_account(tmp_path / "many", plan, many)
    rows = [
        [
            row
            for name in result.drops
            for row in open_table(drop_path(tmp_path / folder / ".work", name)).to_pylist()
        ]
        for folder, result in (("one", found), ("many", many))
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("threshold", [0.0, 0.7])
def test_figures_are_those_of_the_rules(tmp_path: Path, threshold: float) -> None:
    parts = made_up(np.random.default_rng(9), (60, 30, 30))
    plan = write_segments(tmp_path / ".work", parts)
    found, _ = deduplicated(tmp_path, plan, threshold=threshold)
    model = Model(parts, threshold)
    texts: dict[int, int] = defaultdict(int)
    for doc in (doc for part in parts for doc in part if doc.reason is None):
        texts[doc.hash] += 1
    assert found.figures["exact"]["groups"] == by_size(texts.values())
    bands: dict[tuple[int, bytes], int] = defaultdict(int)
    for doc in model.signers.values():
        for band in range(NUM_BANDS):
            assert doc.signature
            bands[band, doc.signature[8 * band : 8 * band + 8]] += 1
    near = found.figures["near"]
    assert near["band_groups"] == by_size(bands.values())
    assert (near["compared"], near["failed"]) == (model.compared, model.failed)
    assert (near["failed"] > 0) == (threshold > 0)
    by_components, _ = deduplicated(tmp_path, plan, threshold=threshold, clusters="components")
    sizes = [len(part) for part in model.parts_of()]
    assert by_components.figures["near"]["components"] == by_size(sizes)
    assert max(sizes) > 3


def by_size(sizes: Iterable[int]) -> dict[str, int]:
    bounds = {"2": (2, 2), "3": (3, 3), "4": (4, 4), "5-9": (5, 9), "10-99": (10, 99)}
    bounds["100+"] = (100, 10**9)
    listed = list(sizes)
    return {
        name: sum(low <= size <= high for size in listed) for name, (low, high) in bounds.items()
    }


def family(edges: Sequence[tuple[int, int]], num: int, orders: Sequence[int]) -> list[Doc]:
    """Documents of which those joined by an edge share one band."""
    rng = np.random.default_rng(1)
    bands = rng.integers(0, 2**64, (num, NUM_BANDS), dtype=np.uint64)
    for number, (one, other) in enumerate(edges):
        bands[other, number % NUM_BANDS] = bands[one, number % NUM_BANDS]
    slots = bytes(NUM_SLOTS)
    return [
        Doc(order=orders[at], position=at, signature=bands[at].tobytes() + slots)
        for at in range(num)
    ]


Cluster = tuple[str, list[tuple[int, int]], Sequence[int], Sequence[int], Sequence[int]]
"""What it is, who shares a band with whom, the orders, who is kept: local, components."""


@pytest.mark.parametrize("cut", [1, 3, 10])
@pytest.mark.parametrize(
    "cluster",
    [
        ("pair", [(0, 1)], [1, 2], [0], [0]),
        ("pair, the other first", [(0, 1)], [2, 1], [1], [1]),
        ("chain, ends unlike", [(0, 1), (1, 2)], [1, 2, 3], [0], [0]),
        ("chain, the middle last", [(0, 1), (1, 2)], [1, 3, 2], [0, 2], [0]),
        ("star, the centre first", [(0, n) for n in range(1, 8)], range(8), [0], [0]),
        ("star, the centre last", [(0, n) for n in range(1, 8)], [9, *range(7)], range(1, 8), [1]),
        ("clique", [(n, m) for m in range(5) for n in range(m)], [4, 2, 0, 1, 3], [2], [2]),
        ("strangers", [], [3, 2, 1], [0, 1, 2], [0, 1, 2]),
        ("chain of ten, rising", [(n, n + 1) for n in range(9)], range(10), [0], [0]),
    ],
)
def test_planted_clusters(tmp_path: Path, cluster: Cluster, cut: int) -> None:
    name, edges, orders, local, components = cluster
    docs = family(edges, len(orders), [order << 50 for order in orders])
    parts = [docs[at::cut] for at in range(min(cut, len(docs)))]
    plan = write_segments(tmp_path / ".work", parts)
    for clusters, wanted in (("local", local), ("components", components)):
        found, _ = deduplicated(tmp_path, plan, clusters=clusters)
        dropped = {position for _, position in verdicts(tmp_path, plan, found)}
        assert sorted(set(range(len(docs))) - dropped) == sorted(wanted), (name, clusters)


def test_a_long_chain_is_one_component(tmp_path: Path) -> None:
    """A chain in random order, so that nothing about it is easy."""
    rng = np.random.default_rng(3)
    num = 300
    orders = rng.permutation(num).tolist()
    docs = family([(n, n + 1) for n in range(num - 1)], num, [order << 50 for order in orders])
    plan = write_segments(tmp_path / ".work", [docs[at::3] for at in range(3)])
    found, _ = deduplicated(tmp_path, plan, clusters="components")
    assert len(verdicts(tmp_path, plan, found)) == num - 1
    assert found.figures["near"]["components"]["100+"] == 1


def test_a_page_repeated_many_times_costs_a_row_per_segment(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    (page,) = family([], 1, [0])
    num = 5_000
    parts = []
    for _ in range(5):
        orders = rng.integers(0, 2**63, num, dtype=np.uint64).tolist()
        parts.append([replace(page, order=o, position=at, hash=7) for at, o in enumerate(orders)])
    parts[4][7] = replace(parts[4][7], hash=9)  # one that differs only in its text
    plan = write_segments(tmp_path / ".work", parts)
    assert [segment.sieved.signed for segment in plan.segments] == [1, 1, 1, 1, 2]
    found, _ = deduplicated(tmp_path, plan)
    dropped = list(verdicts(tmp_path, plan, found).values())
    assert (dropped.count(EXACT), dropped.count(NEAR)) == (5 * num - 2, 1)


def test_many_versions_of_a_page_are_compared_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    (page,) = family([], 1, [0])
    num = 400
    orders = rng.permutation(5 * num).tolist()
    docs = [replace(page, order=o << 50, position=at % num) for at, o in enumerate(orders)]
    plan = write_segments(
        tmp_path / ".work", [docs[at : at + num] for at in range(0, 5 * num, num)]
    )
    monkeypatch.setattr("pipelines.dedup.near.PAIRS_AT_ONCE", 300)
    monkeypatch.setattr("pipelines.dedup.bands.PAIRS_AT_ONCE", 70)
    found, _ = deduplicated(tmp_path, plan)
    first = divmod(orders.index(0), num)
    kept = {(at, row) for at in range(5) for row in range(num)} - set(
        verdicts(tmp_path, plan, found)
    )
    assert kept == {first}
    assert found.figures["near"]["compared"] == NUM_BANDS * (5 * num - 1)
    assert found.figures["near"]["band_groups"]["100+"] == NUM_BANDS


def test_none_and_exact_do_no_more_than_they_say(tmp_path: Path) -> None:
    parts = made_up(np.random.default_rng(2), (30, 30))
    plain = [[replace(doc, signature=None) for doc in part] for part in parts]
    plan = write_segments(tmp_path / ".work", plain)
    for dedup_option, names in (("none", set()), ("exact", {"dedup", "drops"})):
        runner = InlineRunner()
        phases = Phases(tmp_path / ".work", runner)  # type: ignore[arg-type]  # all it uses
        found = Dedup(
            phases, plan, tmp_path, dedup=dedup_option, clusters="local", threshold=0.7
        ).run()
        assert set(phases.seconds) == names
        assert set(found.figures) == ({"exact"} if names else set())
    assert verdicts(tmp_path, plan, found).items() >= Model(plain, 0).reasons.items()


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    parts = made_up(np.random.default_rng(6), (30, 30))
    plan = write_segments(tmp_path / ".work", parts)
    for clusters in ("local", "components"):
        first, tasks = deduplicated(tmp_path, plan, clusters=clusters)
        again, none = deduplicated(tmp_path, plan, clusters=clusters)
        assert tasks
        assert none == []
        assert again == first
    _, other = deduplicated(tmp_path, plan, threshold=0.5)
    assert any(str(task).startswith("dedup of band") for task in other)
    assert len({task.name for task in other}) == len(other)


def test_tasks_are_called_by_what_they_do(tmp_path: Path) -> None:
    plan = write_segments(tmp_path / ".work", made_up(np.random.default_rng(6), (30, 30)))
    names = []
    for clusters in ("local", "components"):
        names += [str(task) for task in deduplicated(tmp_path, plan, clusters=clusters)[1]]
    for name in (
        "dedup of text hash range 0 of 1",
        "dedup of band 13 range 0 of 1",
        "components of similar documents, range 0 of 1",
        "drops of order range 0 of 1",
    ):
        assert name in names


@pytest.mark.parametrize("files", [1, 2, 8, 64])
@pytest.mark.parametrize("shards", [1, 3, 8, 100])
def test_a_shard_gets_the_drop_files_that_overlap_its_range(files: int, shards: int) -> None:
    dedup = Deduplicated(drops=tuple(map(str, range(files))))
    ranges = [Range.of(number, files) for number in range(files)]
    for index in range(shards):
        within = Range.of(index, shards)
        expected = [
            str(number)
            for number, part in enumerate(ranges)
            if part.low < within.high and within.low < part.high
        ]
        assert list(dedup.drops_within(within)) == expected
    assert len(dedup.drops_within(EVERYTHING)) == files
    assert Deduplicated().drops_within(EVERYTHING) == ()
