from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from shards.sampling.mixture import Blend
from shards.sampling.plan import BatchSize, SamplingPlan

RUN = SamplingPlan(mixes=(Blend(start=0, data=("wudao",)),), batches=(BatchSize(step=0, size=4),))


def test_a_run_is_found_in_its_folder(tmp_path: Path) -> None:
    RUN.save(tmp_path / "run.json")
    assert SamplingPlan.load(tmp_path) == SamplingPlan.load(tmp_path / "run.json") == RUN


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=4),
    lengths=st.lists(st.integers(1, 20), min_size=3, max_size=3),
)
def test_every_position_belongs_to_one_step(sizes: list[int], lengths: list[int]) -> None:
    starts = [0, lengths[0], sum(lengths[:2]), sum(lengths)]
    batches = [BatchSize(step=s, size=n) for s, n in zip(starts, sizes, strict=False)]
    run = replace(RUN, batches=tuple(batches))
    steps = [run.step_of(position) for position in range(run.position_of(70))]
    assert steps == [step for step in range(70) for _ in range(run.batch_size(step))]
