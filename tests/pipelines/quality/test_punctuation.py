import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.punctuation import (
    PUNCTUATION,
    TERMINAL,
    chinese_units,
    ends_sentence,
    is_single_line,
)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("一二。三四！五", ["一二。", "三四！", "五"]),
        ("“他来了。”“他走了！”……（完。）", ["“他来了。”", "“他走了！”", "……", "（完。）"]),
        (" \n好； 真的？！ ", ["好；", "真的？！"]),
        ("", []),
    ],
)
def test_sentences_keep_their_marks(text: str, units: list[str]) -> None:
    assert chinese_units(text) == units


@given(st.text(st.sampled_from("ab。！？…；”’)「」 ")))
def test_units_lose_nothing(text: str) -> None:
    assert "".join(chinese_units(text)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("unit", "ends"), [("好。", True), ("他说：“好；”", True), ("好", False), ("（）", False)]
)
def test_the_end_of_a_sentence(unit: str, ends: bool) -> None:
    assert ends_sentence(unit) is ends


def test_a_single_line() -> None:
    assert is_single_line("\n one line \n\n")
    assert not is_single_line("one\ntwo")


def test_sets_of_characters() -> None:
    assert set("!.?。！？") < TERMINAL
    assert not TERMINAL & set(",;:、，；…”")
    assert set("#…“”、-") < set(PUNCTUATION)
    assert [c for c in PUNCTUATION if c.isalnum()] == ["１"]
