import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.compiled import chinese
from pipelines.quality.compiled.lines import every_character
from tests.pipelines.quality.compiled.comparing import ODD, NoLibraries, check, real_texts
from tests.pipelines.quality.texts import TEXTS

NAMES = ("chinese-web", "fineweb2-zh@sentences", "fineweb2-zh@datatrove")
SPLITTERS = NoLibraries()
EDGES = (
    "\n",
    "\n\n\n",
    "a\n\n\na\nb\n",
    "\na\n\u3000\na\r\na\n",
    "”\n",
    "。",
    "。a。a",
    "。）。）”。a）",
    "）。。”’」』）】》\"') \u3000。",
    " 一行。 两行！\n",
    "\r\n一行。\x1c两行！",
    "1.2.3 4..5 6. 7.a .8 9 １２．３ ٣.٤ 1,000.5",
    "a.1.2b3c",
    "aB cD éA ＡＢ ſ K",
    "İ" * 20,
    "i̇" * 20,
    "ΑΣ ΑΣΑ " * 9,
    "ABCDEFGHIJKLMabcdefghijklm",
    "abcdefghijkl",
    "abcdefghijklm",
    "a" * 13,
    "a" * 14,
    "a" * 300,
    "abcdefghijklm abcdefghijklm x abcdefghijklm",
    "\ud800\U0010ffff" * 20,
    "天地玄黄宇宙洪荒日月盈昃辰宿列张" * 100,
)


@pytest.mark.parametrize("text", [*TEXTS, *EDGES])
@pytest.mark.parametrize("name", NAMES)
def test_texts_measure_as_before(name: str, text: str) -> None:
    check(name, text, "zh", splitters=SPLITTERS)


@given(st.one_of(ODD, ODD.map(lambda text: text.replace("\n", ""))), st.sampled_from(NAMES))
def test_any_text_measures_as_before(text: str, name: str) -> None:
    check(name, text, "zh", splitters=SPLITTERS)


@given(
    st.lists(st.integers(0, 40), max_size=8),
    st.text(st.sampled_from("ab。是的”\n 1."), min_size=41, max_size=60),
    st.sampled_from(NAMES),
)
def test_repeated_text_measures_as_before(starts: list[int], text: str, name: str) -> None:
    check(name, "".join(text[start : start + 20] for start in starts), "zh", splitters=SPLITTERS)


@pytest.mark.parametrize(("language", "most"), [("zh", 300), ("en", 100)])
def test_real_texts_measure_as_before(language: str, most: int) -> None:
    for text in real_texts(language, most):
        for name in NAMES:
            check(name, text, "zh", splitters=SPLITTERS)


def test_small_letters_are_those_of_python() -> None:
    unusual = chinese._LONGER_OR_BY_CONTEXT
    small = chinese._lower_case()
    assert len(small) == len(every_character())
    for character in every_character():
        lower = character.lower()
        assert character in unusual or lower == chr(small[ord(character)])
        assert lower.isspace() == character.isspace()
