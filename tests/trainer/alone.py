"""Makes one-process runs, and the configurations that command lines describe, for tests."""

from collections.abc import Sequence

import torch

from trainer.config import TrainConfig
from trainer.distributed import Ranks
from trainer.finetune.command import Finetune

ALONE = Ranks(rank=0, world=1, local_rank=0, device=torch.device("cpu"))


def configured(words: Sequence[str], *, world: int = 1) -> TrainConfig:
    """Return the configuration of the training run that a command line describes."""
    return TrainConfig.read(words, "python -m trainer.train").prepared(world=world)


def tuning(words: Sequence[str], *, world: int = 1) -> Finetune:
    """Return the configuration of the fine-tuning run that a command line describes."""
    return Finetune.read(words, "python -m trainer.finetune").prepared(world=world)
