from pathlib import Path

import numpy as np
import pytest

from pipelines.merge.holdout import LEAST_VALIDATION, holdout_threshold
from pipelines.segments.identity import hash_bound
from tests.pipelines.made_segments import Doc, random_docs, write_segments


def held(docs: list[Doc], threshold: int) -> int:
    return sum(doc.holdout < threshold for doc in docs)


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
    threshold = holdout_threshold(made, "s", work=tmp_path, drops=(), dropped=0, fraction=fraction)
    if wanted is None:
        by_fraction = held(docs, hash_bound(fraction))
        wanted = min(by_fraction, num // 20)
        assert wanted > LEAST_VALIDATION
    assert held(docs, threshold) == wanted
