"""Every profile that needs no spaCy, against the definitions of its metrics."""

import warnings
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.catalog import PROFILES
from pipelines.quality.punctuation import chinese_units

with warnings.catch_warnings():  # jieba has invalid escapes
    warnings.simplefilter("ignore")
    from tests.pipelines.quality.oracle import ORACLES, c4_page, chinese_words, sentences

from tests.pipelines.quality.measuring import measure, metrics
from tests.pipelines.quality.texts import TEXTS


def check(name: str, text: str, words: Sequence[str]) -> None:
    language, oracle = ORACLES[name]
    expected = oracle(text, chinese_words(text) if language == "zh" else words)
    values = [*metrics(name, text, language).values()]
    assert values == pytest.approx(expected, nan_ok=True, abs=1e-12), (name, text)


@pytest.mark.parametrize("name", ORACLES)
def test_texts_measure_as_defined(name: str) -> None:
    assert len(TEXTS) > 40
    for text in TEXTS:
        check(name, text, text.split())


@given(st.text(st.sampled_from("ab c.\n…-•#。！”；是的 1"), max_size=60))
def test_any_text_measures_as_defined(text: str) -> None:
    for name in ORACLES:
        check(name, text, text.split())


@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=40))
def test_repeated_words_measure_as_defined(words: list[str]) -> None:
    # Few words make n-grams that overlap, and that spell the same when joined.
    for name in ("gopher-repetition@paper", "fineweb2-zh@datatrove"):
        check(name, " ".join(words), words)


@pytest.mark.parametrize("text", TEXTS)
def test_lines_that_c4_removes(text: str) -> None:
    assert measure("c4", text)[0].text == c4_page(text)[1]


@given(st.text(st.sampled_from("ab。！？…；”’)「」 ")))
def test_sentences_are_as_defined(text: str) -> None:
    assert chinese_units(text) == sentences(text)


def test_every_profile_without_spacy_is_looked_at() -> None:
    needs_spacy = {profile.name for profile in PROFILES if profile.words == "datatrove"}
    rest = {"fineweb2-zh@sentences", "fineweb2-zh@datatrove"}
    assert set(ORACLES) == {profile.name for profile in PROFILES} - needs_spacy | rest
