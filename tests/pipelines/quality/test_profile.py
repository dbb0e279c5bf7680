import math

import pytest

from pipelines.quality.profile import ABOVE, BELOW, NAN, Profile, Rule, Threshold

THRESHOLDS = (
    Threshold("min_words", 50, "few-words", "least number of words", "a paper"),
    Threshold("max_hashes", NAN, "hashes", "most # per word", "a paper"),
    Threshold(
        "short_line_chars", 30, "", "lines of at most this many characters are short", "code"
    ),
)


def profile(**changes: object) -> Profile:
    settings = {"family": "web", "variant": "paper", "about": "", "metrics": ("words", "hashes")}
    settings |= {"thresholds": THRESHOLDS, "measure": lambda text, _: (text, (0, 0)), **changes}
    return Profile(**settings)  # type: ignore[arg-type]  as given


def test_rules_are_bounds_on_metrics() -> None:
    web = profile()
    rules = web.rules({**web.defaults, "min_words": 30})
    assert rules[0] == Rule(
        profile="web@paper",
        metric="web@paper.words",
        comparison=BELOW,
        bound=30,
        reason="web-few-words",
        threshold="min_words",
    )
    assert (rules[1].comparison, math.isnan(rules[1].bound)) == (ABOVE, True)
    assert tuple(rule.reason for rule in rules) == web.reasons == ("web-few-words", "web-hashes")


def test_a_threshold_without_a_rule_is_not_exact() -> None:
    assert [threshold.exact for threshold in THRESHOLDS] == [True, True, False]


@pytest.mark.parametrize(
    ("changes", "name", "short"),
    [
        ({}, "web@paper", "web@paper"),
        ({"alias": True}, "web@paper", "web"),
        ({"alias": True, "variant": ""}, "web", "web"),
    ],
)
def test_names(changes: dict[str, object], name: str, short: str) -> None:
    web = profile(**changes)
    assert (web.name, web.short) == (name, short)
    assert web.columns == (f"{short}.words", f"{short}.hashes")


@pytest.mark.parametrize(
    ("changes", "served"),
    [
        ({}, {"en", "zh", "ja"}),
        ({"words": "spaces"}, {"en", "zh"}),
        ({"words": "spaces", "languages": frozenset({"en"})}, {"en"}),
    ],
)
def test_languages(changes: dict[str, object], served: set[str]) -> None:
    assert {code for code in ("en", "zh", "ja") if profile(**changes).serves(code)} == served
