import pytest

from pipelines.quality.words import DATATROVE, SPACES, MeasuredText, Splitters


class Counting(Splitters):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def words(self, text: str, *, language: str, kind: str) -> list[str]:
        self.calls.append(kind)
        return super().words(text, language=language, kind=kind)


@pytest.fixture(scope="module")
def splitters() -> Counting:
    return Counting()


def test_chinese_words_are_found_once(splitters: Counting) -> None:
    splitters.calls.clear()
    text = MeasuredText("我来到北京清华大学。\n 他来到了网易杭研大厦", "zh", splitters=splitters)
    wanted = ["我", "来到", "北京", "清华大学", "。", "他", "来到", "了", "网易", "杭研", "大厦"]
    assert text.words(SPACES) == text.words(DATATROVE) == wanted
    assert splitters.calls == [SPACES]
    assert text.replaced("短文").words(SPACES) == ["短文"]


@pytest.mark.parametrize("language", ["yue", "wuu"])
def test_other_chinese_languages_are_split_too(splitters: Counting, language: str) -> None:
    assert splitters.words("北京大学", language=language, kind=SPACES) == ["北京大学"]


def test_other_words_are_those_between_spaces(splitters: Counting) -> None:
    text = MeasuredText(" l'été\u00a0arrive,\nenfin ", "fr", splitters=splitters)
    assert text.words(SPACES) == ["l'été", "arrive,", "enfin"]


@pytest.mark.slow
def test_english_words_of_datatrove(splitters: Counting) -> None:
    text = "Don't IS_ALPHA stop,\n\nIS_ALPHA  Mr. Smith: it's 3.5 km... "
    wanted = ["Do", "n't", "stop", ",", "Mr.", "Smith", ":", "it", "'s", "3.5", "km", "..."]
    for _ in range(3):
        assert splitters.words(text, language="en", kind=DATATROVE) == wanted
    assert splitters.words("", language="en", kind=DATATROVE) == []
    assert splitters.num_sentences(["One. Two! (Three?) Four", "Five. IS_ALPHA"]) == 5
    assert splitters.num_sentences([]) == 0
