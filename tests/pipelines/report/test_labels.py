import pytest

from pipelines.report.labels import WIDTH, Text, inside, spaced, width


def row(*texts: tuple[str, float]) -> list[Text]:
    return [Text(text, x, 0) for text, x in texts]


def words(texts: list[Text]) -> list[str]:
    return [text.text for text in texts]


def test_chinese_is_wider_than_figures_and_figures_than_dots() -> None:
    assert width("") == 0
    assert width("中文") > width("42") > width("..")
    assert width("min 0.7 zh") == pytest.approx(sum(map(width, "min 0.7 zh")))


@pytest.mark.parametrize("anchor", ["start", "middle", "end"])
def test_the_ends_of_a_text_follow_its_anchor(anchor: str) -> None:
    left, right = Text("1234", 100, 0, anchor).span
    assert right - left == pytest.approx(width("1234"))
    assert {"start": left, "middle": (left + right) / 2, "end": right}[anchor] == 100


def test_a_text_at_an_edge_is_moved_into_the_picture() -> None:
    assert inside(Text("100k", 0, 0)).span[0] == 0
    assert inside(Text("100k", WIDTH, 0)).span[1] == WIDTH
    assert inside(Text("100k", 50, 0)) == Text("100k", 50, 0)


def test_texts_that_have_room_stay_and_others_are_thinned_evenly() -> None:
    far = row(("1", 50), ("10", 100), ("100", 150))
    assert spaced(far) == far
    near = row(*((str(number), 50 + 20 * number) for number in range(10, 16)))
    assert words(spaced(near)) == ["10", "12", "14"]
    assert spaced([]) == []


def test_what_is_needed_stays_and_the_rest_makes_room() -> None:
    needed = row(("> 1", 300))
    assert words(spaced(row(("0", 10), ("0.5", 150), ("1", 295)), first=needed)) == [
        "0", "0.5", "> 1",
    ]  # fmt: skip
    assert words(spaced(row(("1", 295)), first=needed)) == ["> 1"]
