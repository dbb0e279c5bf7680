import math

import pytest

from tests.pipelines.quality.measuring import measure, metrics


@pytest.mark.parametrize(
    ("bounds", "text", "left"),
    [
        ({}, "Only four words here.\nFive words are here now.", "Five words are here now."),
        (
            {},
            "This line here is cited.[1][23]\nThis one trails off here...",
            "This line here is cited.",
        ),
        ({}, "Please switch on JavaScript here.\nRead our privacy policy first.", ""),
        ({"min_line_words": 4}, "Only four words here.", "Only four words here."),
        ({"terminal_punctuation": 0}, "No mark ends this line", "No mark ends this line"),
        ({"terminal_punctuation": math.nan}, "No mark ends this line", "No mark ends this line"),
        ({"max_word_chars": 6}, "Abcdefg hij kl mn op.\nAbc def ghi jk lm.", "Abc def ghi jk lm."),
        ({"max_word_chars": math.nan}, f"a b c d {'e' * 2000}.", f"a b c d {'e' * 2000}."),
    ],
)
def test_lines_that_stay(bounds: dict[str, float], text: str, left: str) -> None:
    assert measure("c4", text, **bounds)[0].text == left


def test_a_text_that_keeps_all_its_lines_is_passed_on_itself() -> None:
    text = "A line of prose that stays."
    assert measure("c4", text)[0].text is text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One is here for you. Two is here! (Three?) And four.", (4, 0, 0)),
        ("Lorem ipsum dolor sit amet, consectetur.", (1, 1, 0)),
        ("Here {a} and {b} stand in a line.\nHere {c} stands in one too.", (2, 0, 2)),
        ("", (0, 0, 0)),
    ],
)
def test_what_is_counted_in_lines_that_stay(text: str, wanted: tuple[int, ...]) -> None:
    assert tuple(metrics("c4", text).values()) == wanted
