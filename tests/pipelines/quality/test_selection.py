import math
from pathlib import Path

import pytest

from pipelines.quality.catalog import NAMES, PROFILES, REASONS
from pipelines.quality.selection import chosen_for, find_warnings, parse_selection
from shards.errors import UserError


def names(selection: object, language: str) -> list[str]:
    return [each.profile.name for each in chosen_for(selection, language)]  # type: ignore[arg-type]  a Selection


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
        ("chinese-web", {"zh"}),
    ],
)
def test_what_every_language_means(profile: str, served: set[str]) -> None:
    languages = {"en", "zh", "ja", "fr", "und"}
    selection = parse_selection((profile,))
    assert {each for each in languages if names(selection, each)} == served
    warned = {each for each in languages if find_warnings(selection, [each])}
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
        chosen_for(selection, each)[0].bounds for each in ("en", "de", "fr", "zh")
    )
    assert (english["min_words"], english["min_stop_words"]) == (30, 1)
    assert (french["min_words"], french["min_stop_words"], french["max_hashes"]) == (30, 2, 0.1)
    assert german["min_words"] == 30
    assert math.isnan(german["max_hashes"])
    assert (chinese["max_dup_line"], chinese["min_words"]) == (0.3, 50)


@pytest.mark.parametrize(
    ("specs", "overrides", "message"),
    [
        (["gofer"], [], r'"gofer" is no quality profile: did you mean gopher'),
        (["xyzzy"], [], r'"xyzzy" is no quality profile: there are none, c4, c4@datatrove'),
        (["gopher@dolma"], [], r"did you mean gopher@"),
        (["english=gopher"], [], r'write "en"'),
        (["en="], [], r'"en=" names no quality profile\. Write PROFILE or LANG=PROFILE'),
        (["en=gopher+"], [], r"names no quality profile"),
        (["gopher+gopher@paper"], [], r"names gopher twice"),
        (["en=gopher", "en=c4"], [], r'of "en" are given twice, the second time as "en=c4"'),
        (["gopher", "c4"], [], r"of every language are given twice"),
        (["en=none+gopher"], [], r"none stands alone"),
        (["ja=gopher"], [], r'"ja" is written without spaces between words'),
        (["zh=c4"], [], r"c4 is made for languages with spaces between words, not for"),
        (["fr=gopher@datatrove"], [], r'gopher@datatrove is made for en, not for "fr"'),
        (["en=fineweb2-zh"], [], r'fineweb2-zh is made for wuu, yue, zh, not for "en"'),
        (["gopher"], ["gopher.min_word=3"], r"has no threshold .*did you mean min_word"),
        (["gopher"], ["gopher.min_words"], r"sets no bound\. Write PROFILE\.THRESHOLD=NUMBER"),
        (["gopher"], ["min_words=3"], r"sets no bound"),
        (["gopher"], ["gopher.min_words=many"], r'"many" is no bound\. Give a number'),
        (["gopher"], ["gopher.min_words=-1"], r'"-1" is no bound'),
        (["gopher"], ["gopher.min_words=inf"], r'"inf" is no bound'),
        (["gopher"], ["gopher.min_words=nan"], r'"nan" is no bound'),
        (["gopher"], ["glm.min_chars=1"], r"glm is not among the quality profiles of any lang"),
        (["gopher"], ["glmm.min_chars=1"], r'"glmm" is no quality profile: did you mean glm'),
        (["en=gopher"], ["zh:gopher.min_words=1"], r'gopher is not among .* profiles of "zh"'),
        (["gopher"], ["xx:gopher.min_words=1"], r'"xx" is not a language code'),
    ],
)
def test_what_is_refused(specs: list[str], overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_selection(specs, overrides)


def test_words_that_make_a_profile_hopeless() -> None:
    (warning,) = find_warnings(parse_selection(("zh=gopher",)), ["zh", "en"])
    assert 'Write "zh:gopher.min_word_length=1"' in warning
    mended = parse_selection(("zh=gopher",), ("zh:gopher.min_word_length=1",))
    assert find_warnings(mended, ["zh", "en"]) == ()


def test_the_catalog() -> None:
    assert len({each.name for each in PROFILES}) == len(PROFILES)
    assert len({column for each in PROFILES for column in each.columns}) == sum(
        len(each.metrics) for each in PROFILES
    )
    families = {each.family for each in PROFILES}
    assert {each.family for each in PROFILES if each.alias} == families
    assert families < set(NAMES)
    for profile in PROFILES:
        ruled = {each.metric for each in profile.thresholds if each.exact}
        assert ruled == set(profile.metrics), profile.name
        assert len(set(profile.reasons)) == len(profile.reasons)
        assert all(each.meaning and each.source for each in profile.thresholds)
        assert set(profile.reasons) <= set(REASONS)
        siblings = [each for each in PROFILES if each.family == profile.family]
        assert {each.reasons for each in siblings} == {profile.reasons}


def test_the_documentation_has_every_threshold() -> None:
    text = (Path(__file__).parents[3] / "docs" / "quality.md").read_text("utf-8")
    for family in {each.family for each in PROFILES}:
        variants = [each for each in PROFILES if each.family == family]
        _, _, section = text.partition(f"\n### {family}\n")
        for row, threshold in enumerate(variants[0].thresholds):
            bounds = [each.thresholds[row].default for each in variants]
            cells = ["off" if math.isnan(bound) else f"{bound:,.10g}" for bound in bounds]
            reason = f"`{family}-{threshold.rule}`" if threshold.exact else "none: not exact"
            cells = [f"`{threshold.name}`", *cells, threshold.meaning, reason]
            assert f"| {' | '.join(cells)} |" in section
