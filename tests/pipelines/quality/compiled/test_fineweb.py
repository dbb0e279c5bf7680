import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipelines.quality.compiled.comparing import ODD, NoLibraries, check, real_texts
from tests.pipelines.quality.texts import TEXTS

NAMES = ("fineweb@paper", "fineweb@code")
SPLITTERS = NoLibraries()
EDGES = (
    "\n",
    "a",
    "a\r\na\r\n\u3000\na\x85\na\u2028",
    "end.\nend!\nend。\nend\u0964\nend. \nend",
    "\n".join(["x" * 29, "x" * 30, "x" * 31, "x" * 30]),
    "\n".join([*"abcabcab", "", " ", "c"]),
    "\ud800\n\ud800\n\U0010ffff.",
)


@pytest.mark.parametrize("text", [*TEXTS, *EDGES])
@pytest.mark.parametrize("name", NAMES)
def test_texts_measure_as_before(name: str, text: str) -> None:
    check(name, text, splitters=SPLITTERS)


@given(ODD, st.sampled_from(NAMES), st.sampled_from([float("nan"), 0, 2, 2.5, 30]))
def test_any_text_measures_as_before(text: str, name: str, most: float) -> None:
    check(name, text, splitters=SPLITTERS, short_line_chars=most)


@given(st.text(st.sampled_from("ab.\n "), max_size=40), st.sampled_from(NAMES))
def test_repeated_lines_measure_as_before(text: str, name: str) -> None:
    check(name, text, splitters=SPLITTERS)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_real_texts_measure_as_before(language: str) -> None:
    for text in real_texts(language, 400):
        for name in NAMES:
            check(name, text, language, splitters=SPLITTERS)
