import math

import pytest

from tests.pipelines.quality.measuring import metrics, some_metrics
from tests.pipelines.quality.texts import PROSE


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (PROSE, {"words": 31, "hashes": 0, "alphabetic_words": 1, "stop_words": 5}),
        ("a bb ccc", {"word_length": 2, "stop_words": 0}),
        ("# # a b", {"hashes": 0.5, "alphabetic_words": 0.5}),
        # four dots hold one "..."
        ("so it goes… and goes... and goes.... on", {"ellipses": 3 / 8}),
        ("- one\n- two\n- three\nfour", {"bullet_lines": 0.75}),
        ("on...\ntoo…  \nends.", {"ellipsis_lines": 2 / 3}),
        ("The the THE be", {"stop_words": 2}),
        ("", {"words": 0, "word_length": math.nan, "bullet_lines": math.nan}),
    ],
)
def test_metrics_by_hand(text: str, wanted: dict[str, float]) -> None:
    assert some_metrics("gopher", text, wanted) == pytest.approx(wanted, nan_ok=True)


def test_stop_words_by_language() -> None:
    assert metrics("gopher", "the be", "en")["stop_words"] == 2
    assert metrics("gopher", "我的年", "zh")["stop_words"] == 2
    assert math.isnan(metrics("gopher", "le la et", "fr")["stop_words"])
