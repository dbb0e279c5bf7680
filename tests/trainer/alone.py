"""A run of one process, for tests that need no others."""

import torch

from trainer.ranks import Ranks

ALONE = Ranks(rank=0, world=1, local_rank=0, device=torch.device("cpu"))
