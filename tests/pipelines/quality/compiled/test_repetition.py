import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipelines.quality.compiled.comparing import ODD, NoLibraries, check, real_texts
from tests.pipelines.quality.texts import TEXTS

NAMES = ("gopher-repetition@paper", "gopher-repetition@datatrove")
SPLITTERS = NoLibraries()
EDGES = (
    "\n",
    "\n\n\n",
    "\na\n",
    "a\n\n\nb\n\n\n\na",
    "a\n \nb\n\n \n\na\n\n",
    "a\r\n\r\na\r\n\r\na",
    "\x0ba\n\n\x1ca\x85\n\n\u3000a\n\na\u2028",
    "  a  \n\n\ta\n\n\na b",
    "a\n\na\na\n\n\n\n\na",
    "\n\n a b c\n\n\na b c \n\n",
    "one two three\n\n" * 50,
)


@pytest.mark.parametrize("text", [*TEXTS, *EDGES])
@pytest.mark.parametrize("name", NAMES)
def test_texts_measure_as_before(name: str, text: str) -> None:
    for language in ("en", "zh", "fr"):
        check(name, text, language, splitters=SPLITTERS)


@given(ODD, st.sampled_from(NAMES), st.integers(1, 3))
def test_any_text_measures_as_before(text: str, name: str, times: int) -> None:
    check(name, text * times, splitters=SPLITTERS)


@given(st.text(st.sampled_from("ab \n\n\n"), max_size=60), st.sampled_from(NAMES))
def test_repeated_lines_measure_as_before(text: str, name: str) -> None:
    check(name, text, splitters=SPLITTERS)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_real_texts_measure_as_before(language: str) -> None:
    for text in real_texts(language, 200):
        for name in NAMES:
            check(name, text, language, splitters=SPLITTERS)
