"""Trains GLM on token shards.

python -m trainer.train --data build/wudao --model tiny --batch-size 16 --max-steps 100
deepspeed --module trainer.train …        torchrun --nproc-per-node 8 -m trainer.train …
"""

from typing import TYPE_CHECKING

from shards.interrupt import ended_by_interrupt
from trainer.command import run_command
from trainer.config import Config

if TYPE_CHECKING:
    from trainer.ranks import Ranks


def _train(config: Config, ranks: "Ranks") -> int:
    with ended_by_interrupt():
        from trainer.train.training import train  # noqa: PLC0415  loads torch; --help needs none
    return train(config, ranks)


if __name__ == "__main__":
    run_command("trainer.train", _train)
