import pytest
import torch
from torch.utils.data import DistributedSampler

from trainer.finetune.epoch_order import EpochOrder


@pytest.mark.parametrize("world", [1, 2, 4])
def test_a_batch_is_what_the_samplers_of_all_ranks_give(world: int) -> None:
    order = EpochOrder(num_items=32, batch_size=8, epochs=3, seed=5)
    samplers = [
        DistributedSampler(torch.arange(32), num_replicas=world, rank=rank, seed=5)
        for rank in range(world)
    ]
    for epoch in range(3):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        shares = [list(sampler) for sampler in samplers]
        for number in range(4):
            size = 8 // world
            expected = {i for share in shares for i in share[number * size : (number + 1) * size]}
            assert set(order.items(epoch * 4 + number + 1)) == expected
