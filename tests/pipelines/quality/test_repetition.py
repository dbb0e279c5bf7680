import math

import pytest

from pipelines.quality.repetition import count_repeats, ratio
from tests.pipelines.quality.measuring import some_metrics


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # 6 words of one letter thrice: 18 letters, the commonest pair is 3 times 2 of them
        ("a b c d e f " * 3, {"top_2gram": 6 / 18, "dup_5gram": 1}),
        # "b b" occurs five times in six words; overlaps count in the commonest pair
        ("b b b b b b", {"top_2gram": 10 / 6, "dup_5gram": 1}),
        ("x\n\nx\ny", {"dup_paragraph": 0, "dup_line": 1 / 3}),
        ("abc\n\nabc", {"dup_paragraph": 0.5, "dup_paragraph_chars": 0.5}),
        ("a b", {"top_2gram": 0, "top_3gram": 0, "dup_10gram": 0}),
    ],
)
def test_metrics_by_hand(text: str, wanted: dict[str, float]) -> None:
    assert some_metrics("gopher-repetition", text, wanted) == pytest.approx(wanted)


def test_repeats_are_counted_from_the_second_on() -> None:
    assert count_repeats(["ab", "c", "ab", "ab", "d"]) == (2, 4)
    assert count_repeats(["a", "b"]) == count_repeats([]) == (0, 0)


def test_a_ratio_of_nothing_is_nan() -> None:
    assert ratio(1, 4) == 0.25
    assert math.isnan(ratio(0, 0))
