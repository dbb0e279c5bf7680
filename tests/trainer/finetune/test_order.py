import pytest
import torch
from torch.utils.data import DistributedSampler

from trainer.finetune.order import Order


@pytest.mark.parametrize("world", [1, 2, 4])
def test_a_batch_is_what_the_samplers_of_all_ranks_give(world: int) -> None:
    order = Order(num_items=32, batch_size=8, epochs=3, seed=5)
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


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize(("items", "size", "epochs"), [(10, 4, 3), (8, 4, 2), (3, 4, 5), (7, 1, 2)])
def test_each_epoch_has_each_item_once(items: int, size: int, epochs: int, across: bool) -> None:
    order = Order(num_items=items, batch_size=size, epochs=epochs, seed=0, across_epochs=across)
    seen = [item for step in range(1, order.steps + 1) for item in order.items(step)]
    for epoch in range(epochs):
        assert sorted(seen[epoch * items : (epoch + 1) * items]) == list(range(items))
    assert len(seen) == items * epochs


def test_epochs_end_where_their_last_whole_step_ends() -> None:
    short = Order(num_items=10, batch_size=4, epochs=3, seed=0)
    assert [len(short.items(step)) for step in range(1, 10)] == [4, 4, 2] * 3
    assert [short.ended_epoch(step) for step in range(1, 10)] == [
        *(None, None, 1),
        *(None, None, 2),
        *(None, None, 3),
    ]
    across = Order(num_items=10, batch_size=4, epochs=3, seed=0, across_epochs=True)
    assert [len(across.items(step)) for step in range(1, 9)] == [4] * 7 + [2]
    assert [across.ended_epoch(step) for step in range(1, 9)] == [
        *(None, 1, None, None, 2),
        *(None, None, 3),
    ]
