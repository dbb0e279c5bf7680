from hypothesis import given as for_all
from hypothesis import strategies as st

from pipelines.commit.origin import bounds_as_written
from pipelines.quality import QualityRules
from pipelines.quality.selection import parse_selection

SPECS = ("gopher+glm", "zh=fineweb2-zh", "ja=none")


@for_all(
    st.permutations(
        [
            "gopher.min_words=30",
            "en:gopher.min_words=40.5",
            "zh:fineweb2-zh.max_top_2gram=off",
            "glm.min_chars=1e-7",
            "de:glm.min_chars=7",
        ]
    )
)
def test_bounds_are_written_so_that_they_mean_what_they_meant(overrides: list[str]) -> None:
    before = QualityRules(parse_selection(SPECS, overrides)).describe()
    written = bounds_as_written(before)
    assert QualityRules(parse_selection(SPECS, written)).describe() == before
    assert (
        QualityRules(parse_selection(SPECS, sorted(overrides))).describe().keys() == before.keys()
    )
