"""What runs of made-up sources would take, large ones above all; golden rows have small ones."""

from dataclasses import fields

import pytest

from pipelines.planning import sizes
from pipelines.planning.sizes import SourceSize, validation_share


def made_source(documents: float) -> SourceSize:
    """A source of so many documents, of which nothing else matters."""
    figures = dict.fromkeys((field.name for field in fields(SourceSize)), 0)
    return SourceSize(**{**figures, "documents": documents})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("documents", "fraction", "share"),
    [
        (48_000, 0.0, 0.0),
        (48_000, 0.01, 0.01),
        (1_600, 0.01, 0.02),  # 32 of them, the least
        (10, 0.01, 0.05),  # the most
    ],
)
def test_the_share_of_validation(documents: int, fraction: float, share: float) -> None:
    assert validation_share(made_source(documents=documents), fraction) == share


@pytest.mark.parametrize(
    ("records", "tokens", "segments"),
    [(0, 0, 1), (131_072, 100, 1), (131_073, 100, 2), (1000, 33_554_433, 2), (1e6, 1e6, 8)],
)
def test_a_split_becomes_as_many_segments_as_it_fills(
    records: float, tokens: float, segments: int
) -> None:
    assert sizes.num_segments(records, tokens) == segments
