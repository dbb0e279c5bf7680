import math
from pathlib import Path

import pytest

from pipelines.quality.catalog import NAMES, NONE, PROFILES, REASONS, find_profile, nearest
from shards.errors import UserError


@pytest.mark.parametrize(
    ("name", "full"),
    [("gopher", "gopher@paper"), ("gopher@datatrove", "gopher@datatrove"), ("glm", "glm")],
)
def test_a_bare_name_means_one_variant(name: str, full: str) -> None:
    assert find_profile(name).name == full


@pytest.mark.parametrize("name", [NONE, "gofer", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=f'"{name}" is no quality profile: .*here are none, c4'):
        find_profile(name)


def test_the_nearest_names() -> None:
    names = ["min_words", "max_words", "max_hashes"]
    assert nearest("min_word", names).startswith("did you mean min_words? There are ")
    assert nearest("colour", names) == "there are min_words, max_words, max_hashes"


def test_the_catalog() -> None:
    assert len({profile.name for profile in PROFILES}) == len(PROFILES)
    columns = [column for profile in PROFILES for column in profile.columns]
    assert len(set(columns)) == len(columns)
    families = {profile.family for profile in PROFILES}
    assert {profile.family for profile in PROFILES if profile.alias} == families
    assert families < set(NAMES)
    for profile in PROFILES:
        ruled = {threshold.metric for threshold in profile.thresholds if threshold.exact}
        assert ruled == set(profile.metrics), profile.name
        assert len(set(profile.reasons)) == len(profile.reasons)
        assert all(threshold.meaning and threshold.source for threshold in profile.thresholds)
        assert set(profile.reasons) <= set(REASONS)
        siblings = [other for other in PROFILES if other.family == profile.family]
        assert {other.reasons for other in siblings} == {profile.reasons}


def test_the_documentation_has_every_threshold() -> None:
    text = (Path(__file__).parents[3] / "docs" / "quality.md").read_text("utf-8")
    for family in {profile.family for profile in PROFILES}:
        variants = [profile for profile in PROFILES if profile.family == family]
        _, _, section = text.partition(f"\n### {family}\n")
        for row, threshold in enumerate(variants[0].thresholds):
            bounds = [profile.thresholds[row].default for profile in variants]
            cells = ["off" if math.isnan(bound) else f"{bound:,.10g}" for bound in bounds]
            reason = f"`{family}-{threshold.rule}`" if threshold.exact else "none: not exact"
            cells = [f"`{threshold.name}`", *cells, threshold.meaning, reason]
            assert f"| {' | '.join(cells)} |" in section
