"""Dedup of whole small corpora against what its rules say, written out in plain Python."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup import exact as dedup
from pipelines.dedup import phases as dedup_phases
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from tests.pipelines.dedup.rules import EXACT, NEAR, Choice, check, grow, made_generations
from tests.pipelines.made_segments import Doc

ONCE = [[(40,)], [(30, 1, 25, 24)], [(6,) * 12], [(80, 40)]]
"""Documents of each segment of each generation."""
THRICE = [(40, 30), (25, 1, 20), (30,)]
CASES = [
    *((sizes, clusters, 1) for sizes in ONCE for clusters in ("local", "components")),
    *(pytest.param(THRICE, "local", ranges, marks=pytest.mark.slow) for ranges in (1, 2, 8)),
    ([(30, 12, 24)], "components", 6),
]


@pytest.mark.parametrize("threshold", [0.0, 0.7])
@pytest.mark.parametrize(("sizes", "clusters", "ranges"), CASES)
def test_what_is_dropped_is_what_the_rules_say(
    tmp_path: Path,
    sizes: Sequence[tuple[int, ...]],
    clusters: str,
    ranges: int,
    threshold: float,
) -> None:
    choice = Choice(clusters=clusters, threshold=threshold, ranges=ranges)
    generations = made_generations(len(sizes[0]), sizes, ties=len(sizes) == 1)
    grown = grow(tmp_path, generations, choice)
    known = check(grown, generations, choice)
    reasons = [*grown[0].dropped.values()]
    assert min(reasons.count(EXACT), reasons.count(NEAR)) > 2
    if ranges > 1:
        assert len(grown[0].found.drops) > 1
    if sizes is THRICE:
        assert min(known) > 5
        bands = [table for table in grown[0].generation.signatures if "band-03" in table.path]
        assert len(bands) == ranges
        compared = [task for task in grown[1].tasks if "similar to earlier" in str(task)]
        assert bool(compared) == bool(threshold)


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(data=st.data(), seed=st.integers(0, 2**32), families=st.integers(1, 6))
def test_neither_segments_nor_ranges_nor_generations_decide_anything(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, seed: int, families: int
) -> None:
    generation = st.lists(st.integers(1, 12), min_size=1, max_size=5)
    sizes = data.draw(st.lists(generation, min_size=1, max_size=4))
    choice = Choice(
        clusters=data.draw(st.sampled_from(["local", "components"][: 2 if len(sizes) == 1 else 1])),
        threshold=data.draw(st.sampled_from([0.0, 0.5, 0.7])),
        ranges=data.draw(st.sampled_from([1, 2, 8])),
    )
    generations = made_generations(seed, sizes, families=families)
    grown = grow(tmp_path_factory.mktemp("grown"), generations, choice)
    check(grown, generations, choice)


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
    parts = [docs[at::3] for at in range(3)]
    (grown,) = grow(tmp_path, [parts], Choice(clusters="components"))
    assert len(grown.dropped) == num - 1
    assert grown.found.figures["near"]["components"]["100+"] == 1


def test_a_page_repeated_many_times_costs_a_row_per_segment(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    (page,) = family([], 1, [0])
    num = 5_000
    parts = []
    for _ in range(5):
        orders = rng.integers(0, 2**63, num, dtype=np.uint64).tolist()
        parts.append([replace(page, order=o, position=at, hash=7) for at, o in enumerate(orders)])
    parts[4][7] = replace(parts[4][7], hash=9)  # one that differs only in its text
    (grown,) = grow(tmp_path, [parts], Choice())
    assert [segment.sieved.signed for segment in grown.plan.segments] == [1, 1, 1, 1, 2]
    dropped = list(grown.dropped.values())
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
