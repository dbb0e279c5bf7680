import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.merge.holdout import LEAST_VALIDATION, holdout_threshold, num_shards
from pipelines.segments.identity import hash_bound
from pipelines.segments.plan import Plan
from pipelines.segments.segment import NUM_BINS
from tests.pipelines.made_segments import Doc, random_docs, write_segments


def shard_sizes(docs: list[Doc], shards: int) -> list[int]:
    sizes = [0] * shards
    for doc in docs:
        sizes[(doc.order * shards) >> 64] += len(doc.tokens)
    return sizes


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=3),
    spread=st.sampled_from([2**64, 2**60]),
    limit=st.integers(6, 400),
)
def test_shards_are_the_least_power_of_two_within_the_limit(
    seed: int, sizes: list[int], spread: int, limit: int
) -> None:
    rng = np.random.default_rng(seed)
    parts = [random_docs(rng, size, high=spread) for size in sizes]
    docs = [doc for part in parts for doc in part]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        # A segment of which nothing is kept, and one of another source, change nothing.
        others = [[Doc(order=1, reason="empty")], [Doc(order=1, tokens=[0] * 999)]]
        sources = ["s"] * (len(parts) + 1) + ["other"]
        made = write_segments(work, [*parts, *others], sources=sources)
        found = num_shards(made, "s", work=work, shard_tokens=limit)
    if not docs:
        assert found == 0
        return
    assert found & (found - 1) == 0
    assert found == 1 or max(shard_sizes(docs, found // 2)) > limit
    assert found >= len(docs) or max(shard_sizes(docs, found)) <= limit
    assert found == 1 or found // 2 < len(docs)


@pytest.mark.parametrize(
    ("limit", "shards"),
    [(10, 8192), (19, 8192), (20, 4096), (40, 2048), (81_919, 2), (81_920, 1)],
)
def test_shards_may_be_smaller_than_a_bin(tmp_path: Path, limit: int, shards: int) -> None:
    docs = [Doc(order=at << 51, tokens=[1] * 10, position=at) for at in range(2 * NUM_BINS)]
    made = write_segments(tmp_path, [docs])
    assert num_shards(made, "s", work=tmp_path, shard_tokens=limit) == shards
    assert max(shard_sizes(docs, shards)) <= limit


def held(docs: list[Doc], threshold: int) -> int:
    return sum(doc.holdout < threshold for doc in docs)


def threshold_of(work: Path, plan: Plan, fraction: float) -> int:
    return holdout_threshold(plan, "s", work=work, drops=(), dropped=0, fraction=fraction)


@pytest.mark.parametrize(
    ("num", "fraction", "wanted"),
    [
        (10_000, 0.0, 0),
        (10_000, 0.001, LEAST_VALIDATION),
        (1000, 1e-20, LEAST_VALIDATION),  # no hash is that small
        (10_000, 0.02, None),  # the fraction itself
        (10_000, 0.05, None),
        (640, 0.001, 32),
        (100, 0.05, 5),
        (20, 0.001, 1),
        (19, 0.001, 0),
    ],
)
def test_validation_is_the_fraction_within_its_bounds(
    tmp_path: Path, num: int, fraction: float, wanted: int | None
) -> None:
    docs = random_docs(np.random.default_rng(num), num)
    made = write_segments(tmp_path, [docs[: num // 3], docs[num // 3 :]])
    threshold = threshold_of(tmp_path, made, fraction)
    if wanted is None:
        by_fraction = held(docs, hash_bound(fraction))
        wanted = min(by_fraction, num // 20)
        assert wanted > LEAST_VALIDATION
    assert held(docs, threshold) == wanted
