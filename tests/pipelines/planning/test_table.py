import pytest

from pipelines.corpus.options import Options
from pipelines.planning.estimate import Estimate, estimate
from pipelines.planning.sizes import run_extent
from pipelines.planning.storage import Requests
from pipelines.planning.table import bytes_text, duration_text, plan_lines, suggestions
from tests.pipelines.planning.made_sources import SPLIT, made_source


def estimated(splits: int, options: Options) -> Estimate:
    extent = run_extent({"web": made_source(splits)}, options, token_bytes=2)
    return estimate(extent, workers=64, split=SPLIT, model_bytes=0, remote=False)


def test_the_plan_says_what_a_run_takes() -> None:
    options = Options()
    text = "\n".join(plan_lines(estimated(100, options), options, shares={"web": 0.1}))
    for words in ("web", "10 %", "100 splits", "wall time", "on 64 workers", "disk", "memory"):
        assert words in text
    assert "requests" not in text


def test_requests_are_a_table_by_phase_and_kind() -> None:
    options, plan = Options(), estimated(100, Options())
    requests = {"map": Requests(put=900), "merge": Requests(get=1200, bytes=2e9)}
    plan = Estimate(
        **{name: getattr(plan, name) for name in Estimate.__slots__ if name != "requests"},
        requests=requests,
    )
    text = "\n".join(plan_lines(plan, options, shares={"web": 0.1}))
    assert "requests" in text
    assert "1,200" in text
    assert "2,100" in text, "the sum"
    assert "2 GB" in text


def test_groups_and_fuller_segments_are_suggested() -> None:
    many = list(suggestions(estimated(100_000, Options()), Options()))
    assert "1,250 groups" in many[0]
    cut = estimated(640_000, Options(shards=65_536))
    assert (
        "cut into 128 ranges before merge, which reads and writes them 1 more time"
        in list(suggestions(cut, Options()))[1]
    )
    text = "\n".join(plan_lines(cut, Options(), shares={"web": 0.1}))
    assert "ranges of groups" in text
    few = list(suggestions(estimated(10, Options()), Options()))
    assert few == [
        "only 10 of 64 workers have a split to map: choose a smaller --split-bytes",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (600, "10 min"), (86_400, "24.0 h"), (864_000, "10.0 days")]
)
def test_durations_have_a_fitting_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(5, "5 B"), (2.5e9, "2.5 GB"), (4e15, "4,000 TB")])
def test_sizes_have_a_fitting_unit(count: float, text: str) -> None:
    assert bytes_text(count) == text
