"""Dedup of whole small corpora against what its rules say, written out in plain Python."""

from collections.abc import Sequence
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("texts", "exact", "minhash"),
    [
        (2_000_000, (1, 512), (4, 512)),
        (66_000_000, (64, 512), (256, 426)),
        (1_000_000_000, (512, 450), (256, 28)),
        (33_000_000_000, (4096, 13), (16384, 1)),
    ],
)
def test_how_many_files_of_a_hash_there_are_goes_by_the_texts_alone(
    texts: int, exact: tuple[int, int], minhash: tuple[int, int]
) -> None:
    for dedup_flag, rows_per_task, (ranges, many) in (
        ("exact", dedup.ROWS_PER_TASK, exact),
        ("minhash", dedup_phases.SLOTS_PER_TASK, minhash),
    ):
        assert dedup_phases.many_ranges(texts, dedup_flag) == many
        found = dedup.num_ranges(texts, rows_per_task=rows_per_task, many=many)
        assert found == ranges
        if ranges > 1:
            assert texts / ranges <= dedup.MOST_GROWTH * rows_per_task
