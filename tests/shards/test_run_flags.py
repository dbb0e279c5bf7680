from dataclasses import dataclass
from typing import Any

import pytest

from shards.command import Command
from shards.mixture import Mix
from shards.run import BatchSize, Run
from shards.run_flags import RunOptions


@dataclass(frozen=True, kw_only=True)
class Asked(Command, RunOptions):
    """Ask for a run."""


def parsed(line: str) -> Run:
    return Asked.parse(line.split(), "run").as_run()


PLAIN: dict[str, Any] = {
    "mixes": (Mix(start=0, data=("a",)),),
    "batches": (BatchSize(step=0, size=8),),
}


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("", {}),
        (
            "--seed -4 --scatters 8 --objective causal --length 2048",
            {
                "seed": -4,
                "scatters": 8,
                "objective": "causal",
                "length": 2048,
            },
        ),
        (
            "--slack 0 --steps 1k --max-epochs a=2 a:x=0.5",
            {
                "slack": 0,
                "steps": 1000,
                "max_epochs": {"a": 2.0, "a:x": 0.5},
            },
        ),
        (
            "--batch-size 8 100:16",
            {
                "batches": (BatchSize(step=0, size=8), BatchSize(step=100, size=16)),
            },
        ),
        (
            "--data a=1 b=2 --data-from 50 a=1 --data-from 90 b=1 c=1",
            {
                "mixes": (
                    Mix(start=0, data=("a=1", "b=2")),
                    Mix(start=50, data=("a=1",)),
                    Mix(start=90, data=("b=1", "c=1")),
                ),
            },
        ),
    ],
)
def test_flags_are_the_options_of_a_run(line: str, values: dict[str, Any]) -> None:
    assert parsed(f"--data a --batch-size 8 {line}") == Run(**{**PLAIN, **values})
