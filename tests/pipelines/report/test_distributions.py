from collections.abc import Sequence
from typing import Any

import pytest

from pipelines.report.distributions import distributions
from tests.pipelines.report.reading import counted


def histograms(**columns: dict[str, int]) -> dict[str, Any]:
    return {name: {"kept": counts, "dropped": {}} for name, counts in columns.items()}


def rule(bound: float, comparison: str = "<") -> dict[str, Any]:
    return {"metric": "words", "comparison": comparison, "bound": bound, "reason": "few"}


def test_figures_have_a_title_a_caption_and_the_thresholds_of_their_rules() -> None:
    report = {
        "histograms": {"a": histograms(words=counted(3, 5, 8), bytes=counted(10, 20))},
        "rules": {"zh": [rule(4)], "en": [rule(4), rule(100, ">")], "*": [rule(2)]},
    }
    ((source, (length, words)),) = distributions(report, {}).items()
    assert source == ""
    assert (length.title, words.title) == ("Length in bytes", "words")
    assert words.caption == "3 kept: median 5, 90 % from 3 to 8"
    assert words.thresholds == ["min 2: every other language", "min 4: en, zh", "max 100: en"]
    labels = [label.text for label in words.picture.labels if label.kind == "bound"]
    assert labels == ["min 2", "min 4 en,zh", "max 100 en"]
    assert not length.thresholds


@pytest.mark.parametrize(
    ("languages", "label"),
    [
        (("zh",), "min 4 zh"),
        (("de", "en", "fr", "zh"), "min 4 de,en,fr,zh"),
        (("de", "en", "fr", "ja", "zh"), "min 4 5 lang."),
        (("a_language_with_a_very_long_name", "zh"), "min 4 2 lang."),
    ],
)
def test_languages_that_have_no_room_in_a_label_are_counted_there_and_named_below(
    languages: Sequence[str], label: str
) -> None:
    report = {
        "histograms": {"a": histograms(words=counted(3, 5))},
        "rules": {language: [rule(4)] for language in languages},
    }
    (words,) = distributions(report, {})[""]
    assert [each.text for each in words.picture.labels] == [label]
    assert words.thresholds == [f"min 4: {', '.join(languages)}"]


def test_the_language_score_has_the_threshold_of_the_run() -> None:
    report = {"histograms": {"a": histograms(score=counted(0.5, 0.9))}, "rules": {}}
    (score,) = distributions(report, {"language_threshold": 0.65})[""]
    assert score.thresholds == ["min 0.65: every language"]
    (score,) = distributions(report, {"language_threshold": 0.0})[""]
    assert not score.thresholds


def test_several_sources_are_shown_together_and_one_by_one() -> None:
    report = {
        "histograms": {"a": histograms(words=counted(3)), "b": histograms(words=counted(3, 5))},
        "rules": {},
    }
    shown = distributions(report, {})
    assert list(shown) == ["", "a", "b"]
    assert [own[0].caption[:6] for own in shown.values()] == ["3 kept", "1 kept", "2 kept"]


def test_a_figure_that_is_the_same_everywhere_is_constant() -> None:
    report = {
        "histograms": {"a": histograms(words=counted(3, 3), lines=counted(1, 2), none={})},
        "rules": {},
    }
    words, lines = distributions(report, {})[""]
    assert (words.is_constant, words.median) == (True, 3)
    assert not lines.is_constant
