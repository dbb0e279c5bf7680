from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from shards.dataset_commands import Trace
from shards.sampling.mixture import Blend
from shards.sampling.plan import BatchSize, SamplingPlan

PLAN = SamplingPlan(mixes=(Blend(start=0, data=("wudao",)),), batches=(BatchSize(step=0, size=4),))


def test_a_plan_is_found_in_its_folder(tmp_path: Path) -> None:
    PLAN.save(tmp_path / "run.json")
    assert SamplingPlan.load(tmp_path) == SamplingPlan.load(tmp_path / "run.json") == PLAN


def test_flags_that_are_whole_numbers() -> None:
    numbers = {"scatters": 8, "length": 2000, "slack": 3, "steps": 20_000, "seed": -1}
    flags = "--scatters 8 --length 2k --slack 3 --steps 20k --seed -1"
    words = ["--data", "wudao", "--batch-size", "4", *flags.split(), "--step", "0"]
    assert Trace.parse(words, "trace").sampling_plan() == replace(PLAN, **numbers)


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=4),
    lengths=st.lists(st.integers(1, 20), min_size=3, max_size=3),
)
def test_every_position_belongs_to_one_step(sizes: list[int], lengths: list[int]) -> None:
    starts = [0, lengths[0], sum(lengths[:2]), sum(lengths)]
    batches = [BatchSize(step=s, size=n) for s, n in zip(starts, sizes, strict=False)]
    plan = replace(PLAN, batches=tuple(batches))
    steps = [plan.step_of(position) for position in range(plan.position_of(70))]
    assert steps == [step for step in range(70) for _ in range(plan.batch_size(step))]
