"""The command `python -m trainer.train`: trains a model on a dataset.

python -m trainer.train --data build/wudao --model tiny --batch-size 16 --max-steps 100
deepspeed --module trainer.train …        torchrun --nproc-per-node 8 -m trainer.train …
"""

import sys
from dataclasses import dataclass

from shards.console import run_module
from trainer.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class Train(TrainConfig):
    """Train GLM on token shards."""

    WORK = "trainer.hooks:train"


if __name__ == "__main__":
    sys.exit(run_module("trainer.train"))
