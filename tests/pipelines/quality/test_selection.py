import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.selection import Selection, chosen_for, find_warnings, parse_selection
from shards.errors import UserError


def names(selection: Selection, language: str) -> list[str]:
    return [bound.profile.name for bound in chosen_for(selection, language)]


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
