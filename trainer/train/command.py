"""The command `python -m trainer.train`: a run that learns a dataset.

python -m trainer.train --data build/wudao --model tiny --batch-size 16 --max-steps 100
deepspeed --module trainer.train …        torchrun --nproc-per-node 8 -m trainer.train …
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shards.interrupt import ended_by_interrupt
from trainer.config import Config, config_of
from trainer.settings import Settings

if TYPE_CHECKING:
    from trainer.ranks import Ranks


@dataclass(frozen=True, kw_only=True)
class Train(Settings):
    """Trains GLM on token shards."""

    PROGRAM = "trainer.train"

    def prepared(self, *, world: int) -> Config:
        """Return the run."""
        return config_of(self, world=world)

    def work(self, asked: Config, ranks: "Ranks") -> int:
        """Train."""
        with ended_by_interrupt():
            from trainer.train.training import train  # noqa: PLC0415  loads torch
        return train(asked, ranks)
