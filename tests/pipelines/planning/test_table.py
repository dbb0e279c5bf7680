import pytest

from pipelines.corpus.options import Options
from pipelines.planning.estimate import Estimate, estimate
from pipelines.planning.sizes import run_extent
from pipelines.planning.table import bytes_text, duration_text, plan_lines
from tests.pipelines.planning.made_sources import made_estimate, made_source


def printed(made: Estimate) -> str:
    return "\n".join(plan_lines(made, Options()))


def test_the_plan_says_what_a_run_takes() -> None:
    text = printed(made_estimate())
    for words in ("web", "10 %", "100 splits", "wall time", "on 64 workers", "disk", "memory"):
        assert words in text


def test_groups_ranges_and_smaller_splits_are_suggested() -> None:
    assert "segments are merged into 1,250 groups first" in printed(made_estimate(100_000))
    cut = printed(made_estimate(640_000, shards=65_536))
    assert "128 ranges before merge, which reads and writes them 1 more time\n" in f"{cut}\n"
    assert " ranges of groups, " in cut
    few = "only 10 of 64 workers have a split to map: choose a smaller --split-bytes"
    assert printed(made_estimate(10)).endswith(f"\n\n{few}")


def test_empty_segments_and_too_many_rejects_are_named() -> None:
    source = made_source(100_000, records=1e6, tokens=1e9, rejects=1e5)
    text = printed(estimate(run_extent({"web": source}, Options()), workers=1, model_bytes=0))
    assert "segments are 0 % full: --split-bytes " in text
    assert "10 % of the sample cannot be read: more than --max-reject-rate 0.01 allows" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (600, "10 min"), (86_400, "24.0 h"), (864_000, "10.0 days")]
)
def test_durations_have_a_fitting_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(5, "5 B"), (2.5e9, "2.5 GB"), (4e15, "4,000 TB")])
def test_sizes_have_a_fitting_unit(count: float, text: str) -> None:
    assert bytes_text(count) == text
