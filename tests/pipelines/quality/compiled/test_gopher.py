import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality import gopher as plain
from pipelines.quality.compiled.gopher import datatrove_metrics
from pipelines.quality.gopher import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS
from pipelines.quality.punctuation import PUNCTUATION
from pipelines.quality.words import MeasuredText
from tests.pipelines.quality.compiled.comparing import ODD, NoLibraries, check, real_texts
from tests.pipelines.quality.texts import TEXTS

NAMES = ("gopher@paper", "gopher@datatrove")
SPLITTERS = NoLibraries()
EDGES = (
    ". .. ... .... ..... ...... ....... …... ...…",
    "..\n. .\n.. ..\x85.",
    "a...\r\nb…\rc... \n\r\n...\n…\x1c . ..\n",
    "a....\x1d  - b\x1e* c\u2028• d\u2029\t-\x1f•",
    "\u3000• one\n\x1f- two\n\xa0* three\n\n-\n•",
    "\ufeff- one",
    "theThe THE\u200b the\x00 \u0001the th the. Tbe \u017fthe haVE WITh witH That",
    "THAT\u212a \u0130the toO TO tO \uff54\uff48\uff45",
    "½ ² x² 3rd ... _ the ٣ ª º ⅷ 々 𝒳 \ud800 \U0010ffff",
    " ".join(PUNCTUATION),
    " ".join(f"{mark}a{mark} {mark}{mark} {mark}1" for mark in PUNCTUATION),
    " ".join(sorted(CHINESE_STOP_WORDS)),
)


@pytest.mark.parametrize("text", [*TEXTS, *EDGES])
@pytest.mark.parametrize("name", NAMES)
def test_texts_measure_as_before(name: str, text: str) -> None:
    for language in ("en", "zh", "fr"):
        check(name, text, language, splitters=SPLITTERS)


PIECES = st.sampled_from(
    [
        *ENGLISH_STOP_WORDS,
        *map(str.upper, ENGLISH_STOP_WORDS),
        "Th",
        "wITH",
        "的",
        "年",
        *" \n.…-*•#a",
    ]
)


@given(st.lists(st.one_of(PIECES, ODD), max_size=20).map("".join), st.sampled_from(NAMES))
def test_any_text_measures_as_before(text: str, name: str) -> None:
    check(name, text, splitters=SPLITTERS)


@given(st.lists(st.one_of(PIECES, ODD), max_size=20).map(" ".join))
def test_other_stop_words(text: str) -> None:
    for stop_words in (ENGLISH_STOP_WORDS, CHINESE_STOP_WORDS, {"a", "年月"}):
        measured = MeasuredText(text, "zh", splitters=SPLITTERS)
        wanted = plain.datatrove_metrics(measured, stop_words)
        assert repr(datatrove_metrics(measured, stop_words)) == repr(wanted)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_real_texts_measure_as_before(language: str) -> None:
    for text in real_texts(language, 400):
        for name in NAMES:
            check(name, text, language, splitters=SPLITTERS)
