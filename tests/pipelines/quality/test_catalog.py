import math
from pathlib import Path

from pipelines.quality.catalog import PROFILES


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
