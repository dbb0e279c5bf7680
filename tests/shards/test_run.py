import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import UserError
from shards.mixture import Mix
from shards.run import BatchSize, Run
from shards.windows import causal_windows, glm_windows

RUN = Run(mixes=(Mix(start=0, data=("wudao",)),), batches=(BatchSize(step=0, size=4),))


def sizes(*pairs: tuple[int, int]) -> tuple[BatchSize, ...]:
    return tuple(BatchSize(step=step, size=size) for step, size in pairs)


def test_a_saved_run_is_the_same_run(tmp_path: Path) -> None:
    run = Run(
        mixes=(Mix(start=0, data=("a=1", "b:pile=0.5")), Mix(start=100, data=("a@2",))),
        batches=sizes((0, 4), (10, 8)),
        seed=-3,
        scatters=8,
        objective="causal",
        length=2048,
        slack=None,
        max_epochs={"a": 4},
        steps=1000,
    )
    run.save(tmp_path / "run.json")
    assert Run.load(tmp_path / "run.json") == run
    assert json.loads((tmp_path / "run.json").read_bytes())["batches"] == [
        {"size": 4, "step": 0},
        {"size": 8, "step": 10},
    ]


@pytest.mark.parametrize(
    ("batches", "step", "position", "size"),
    [
        (sizes((0, 4)), 0, 0, 4),
        (sizes((0, 4)), 1000, 4000, 4),
        (sizes((0, 4), (10, 8)), 9, 36, 4),
        (sizes((0, 4), (10, 8)), 10, 40, 8),
        (sizes((0, 4), (10, 8)), 11, 48, 8),
        (sizes((0, 4), (10, 8), (11, 2)), 13, 52, 2),
    ],
)
def test_positions_of_steps(
    batches: tuple[BatchSize, ...], step: int, position: int, size: int
) -> None:
    run = replace(RUN, batches=batches)
    assert (run.position_of(step), run.batch_size(step)) == (position, size)


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


def test_the_window() -> None:
    assert replace(RUN, length=512).window == glm_windows(512)
    assert replace(RUN, length=512, slack=0).window == glm_windows(512, slack=0)
    assert replace(RUN, length=512, objective="causal").window == causal_windows(512)
    with pytest.raises(UserError, match="slack of 400"):
        _ = replace(RUN, length=512, slack=400).window
