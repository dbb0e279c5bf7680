import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.selection import Selection, chosen_for, find_warnings, parse_selection
from shards.errors import UserError


def names(selection: Selection, language: str) -> list[str]:
    return [bound.profile.name for bound in chosen_for(selection, language)]


def test_every_language_and_one() -> None:
    selection = parse_selection(("gopher+glm", "zh=fineweb2-zh", "de=none", "en = c4 + gopher"))
    assert names(selection, "fr") == ["gopher@paper", "glm"]
    assert names(selection, "zh") == ["fineweb2-zh@sentences"]
    assert names(selection, "de") == []
    assert names(selection, "en") == ["c4@paper", "gopher@paper"]
    assert names(parse_selection(()), "en") == []
    assert names(parse_selection(("en=glm",)), "fr") == []


@pytest.mark.parametrize(
    ("profile", "served"),
    [
        ("glm", {"en", "zh", "ja", "fr", "und"}),
        ("gopher", {"en", "zh", "fr", "und"}),
        ("gopher@datatrove", {"en"}),
        ("gopher-repetition", {"en", "zh", "fr", "und"}),
        ("gopher-repetition@datatrove", {"en", "zh"}),
        ("c4", {"en", "fr"}),
        ("c4@fineweb", {"en"}),
        ("fineweb", {"en", "zh", "fr", "und"}),
        ("fineweb@code", {"en", "zh"}),
        ("fineweb2-zh", {"zh"}),
    ],
)
def test_what_every_language_means(profile: str, served: set[str]) -> None:
    languages = {"en", "zh", "ja", "fr", "und"}
    selection = parse_selection((profile,))
    assert {code for code in languages if names(selection, code)} == served
    warned = {code for code in languages if find_warnings(selection, [code])}
    assert warned - {"zh"} == languages - served - {"zh"}


def test_bounds() -> None:
    selection = parse_selection(
        ("gopher", "zh=fineweb2-zh", "en=gopher@datatrove+glm"),
        (
            "gopher.min_words=30",
            "zh:fineweb2-zh.max_dup_line=0.3",
            "de:gopher.max_hashes=off",
            "gopher@datatrove.min_stop_words = 1",
        ),
    )
    english, german, french, chinese = (
        chosen_for(selection, code)[0].bounds for code in ("en", "de", "fr", "zh")
    )
    assert (english["min_words"], english["min_stop_words"]) == (30, 1)
    assert (french["min_words"], french["min_stop_words"], french["max_hashes"]) == (30, 2, 0.1)
    assert german["min_words"] == 30
    assert math.isnan(german["max_hashes"])
    assert (chinese["max_dup_line"], chinese["min_words"]) == (0.3, 50)


def test_words_that_make_a_profile_hopeless() -> None:
    (warning,) = find_warnings(parse_selection(("zh=gopher",)), ["zh", "en"])
    assert 'Write "zh:gopher.min_word_length=1"' in warning
    mended = parse_selection(("zh=gopher",), ("zh:gopher.min_word_length=1",))
    assert find_warnings(mended, ["zh", "en"]) == ()


_SNIPPETS = [
    *("gopher", "glm", "c4@fineweb", "none", "zh", "en", "English", "min_words", "max_chars"),
    *("=", "+", ".", ":", "@", ",", " ", "", "\n", "\0", "\ud800", "x" * 300, "人"),
    *("1", "-1", "0.5", "nan", "inf", "1e400", "9" * 5000, "off", "１", "1_0"),
]
_WRITTEN = st.lists(st.sampled_from(_SNIPPETS), max_size=7).map("".join)


@given(st.lists(_WRITTEN, max_size=3), st.lists(_WRITTEN, max_size=2))
def test_whatever_is_written_is_understood_or_refused(
    specs: list[str], overrides: list[str]
) -> None:
    with suppress(UserError):
        selection = parse_selection(("gopher", *specs), overrides)
        for language in ("zh", "en"):
            bounds = [chosen.bounds.values() for chosen in chosen_for(selection, language)]
            assert all(bound >= 0 or math.isnan(bound) for each in bounds for bound in each)
