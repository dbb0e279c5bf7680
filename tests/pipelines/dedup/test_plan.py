import pytest

from pipelines.dedup import exact as dedup
from pipelines.dedup import plan as dedup_plan


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
    for dedup_flag, rows_per_item, (ranges, many) in (
        ("exact", dedup.ROWS_PER_ITEM, exact),
        ("minhash", dedup_plan.SLOTS_PER_ITEM, minhash),
    ):
        assert dedup_plan.many_ranges(texts, dedup_flag) == many
        found = dedup.num_ranges(texts, rows_per_item=rows_per_item, many=many)
        assert found == ranges
        if ranges > 1:
            assert texts / ranges <= dedup.MAX_GROWTH * rows_per_item
