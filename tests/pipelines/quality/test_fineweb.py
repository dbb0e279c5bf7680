import pytest

from tests.pipelines.quality.measuring import metrics, some_metrics


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One.\nTwo\n\n  \nThree!", {"punctuated_lines": 2 / 3, "short_lines": 1}),
        ("same\nsame\nother", {"dup_line_chars": 4 / 13, "newlines": 2 / 3}),
        ("end. ", {"punctuated_lines": 0}),
    ],
)
def test_metrics_by_hand(text: str, wanted: dict[str, float]) -> None:
    assert some_metrics("fineweb", text, wanted) == pytest.approx(wanted)


@pytest.mark.parametrize(("most", "wanted"), [(4, 0), (5, 0.5), (6, 1)])
def test_a_short_line_is_what_its_threshold_says(most: int, wanted: float) -> None:
    assert metrics("fineweb", "five5\nsixsix", short_line_chars=most)["short_lines"] == wanted
