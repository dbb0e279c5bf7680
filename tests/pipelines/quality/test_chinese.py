import math

import pytest

from tests.pipelines.quality.measuring import metrics, some_metrics
from tests.pipelines.quality.texts import CHINESE_PROSE, TEXTS


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("chinese-web", "一二三四五六七八九十", {"chars": 10, "line_chars": 10, "han": 1}),
        ("chinese-web", "一二。三四！五", {"line_chars": 7 / 3, "newlines": 0}),
        ("chinese-web", "一二。\n三四！五", {"line_chars": 4, "newlines": 1 / 5}),
        ("chinese-web", "有 3.5 或 12 a", {"numbers": 2 / 3}),
        ("chinese-web", "3.5", {"numbers": math.nan, "newlines": math.nan}),
        # 24 characters make 12 runs of 13, none of them equal; 26 make 14, of which 2 are equal
        ("chinese-web", "一二三四五六七八九十甲乙" * 2, {"repeated_13grams": 0}),
        ("chinese-web", "一二三四五六七八九十甲乙丙" * 2, {"repeated_13grams": 2 / 14}),
        ("fineweb2-zh", "是。是。是。好！", {"dup_line": 0.5, "punctuated_lines": 1}),
        ("fineweb2-zh@datatrove", "是。是。是。好！", {"dup_line": 0, "punctuated_lines": 1}),
        ("fineweb2-zh", "好。真的", {"punctuated_lines": 0.5}),
        ("fineweb2-zh@datatrove", "好。真的", {"punctuated_lines": 0}),
        ("fineweb2-zh", "他说：“好；”", {"punctuated_lines": 1}),
        ("fineweb2-zh@datatrove", "他说：“好；”", {"punctuated_lines": 0}),
        ("fineweb2-zh", "的的", {"stop_words": 1}),
        # a pair that occurs once is still the commonest, with the space between its words
        ("fineweb2-zh", "你好，世界", {"top_2gram": 4 / 5, "words": 2, "alphabetic_words": 2 / 3}),
    ],
)
def test_metrics_by_hand(name: str, text: str, wanted: dict[str, float]) -> None:
    assert some_metrics(name, text, wanted, "zh") == pytest.approx(wanted, nan_ok=True)


def test_sentences_take_the_place_of_lines_only_where_there_is_one_line() -> None:
    several = [text for text in TEXTS if "\n" in text.strip()]
    assert len(several) > 10
    for text in several:
        as_published = metrics("fineweb2-zh@datatrove", text, "zh")
        assert metrics("fineweb2-zh", text, "zh") == pytest.approx(as_published, nan_ok=True)
    assert metrics("fineweb2-zh", CHINESE_PROSE, "zh")["dup_line"] == 0
    assert metrics("fineweb2-zh", CHINESE_PROSE * 2, "zh")["dup_line"] == 0.5
