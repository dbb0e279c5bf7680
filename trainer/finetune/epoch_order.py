"""The order in which the items of a task are trained on, and the steps at which epochs end.

    epoch 1: a permutation of all items      epoch 2: a new one      …
    | batch | batch | batch | short |          an epoch's last batch is short, or
    | batch | batch | batch | batch…           (across epochs) the next epoch fills it

The items of a step depend only on the seed and the step, so a checkpoint records no state of the
order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch


@dataclass(frozen=True, kw_only=True)
class EpochOrder:
    """The order of a run's items; steps and epochs count from 1."""

    num_items: int
    batch_size: int
    epochs: int
    seed: int
    across_epochs: bool = False
    """Whether a batch may contain the end of an epoch and the beginning of the next, as with
    gradient accumulation in THUDM/GLM; otherwise the last batch of an epoch is short."""

    @property
    def steps(self) -> int:
        """The number of steps of the run."""
        return self.last_step(self.epochs)

    def last_step(self, epoch: int) -> int:
        """Return the step with which an epoch ends.

        If batches cross epochs, this is the last step whose items all belong to this or earlier
        epochs, but the last step of the run takes all remaining items. Several epochs that are
        smaller than a batch may end with the same step.
        """
        if not self.across_epochs:
            return epoch * -(-self.num_items // self.batch_size)
        seen = epoch * self.num_items
        ended = -(-seen // self.batch_size) if epoch == self.epochs else seen // self.batch_size
        return max(1, ended)

    def ended_epoch(self, step: int) -> int | None:
        """Return the epoch that ends with a step; None if no epoch does."""
        if step == self.steps:
            return self.epochs
        if self.across_epochs:
            # The last epoch that ends before the end of the next step.
            epoch = min(self.epochs, -(-(step + 1) * self.batch_size // self.num_items) - 1)
        else:
            epoch = step // self.last_step(1)
        return epoch if epoch > 0 and self.last_step(epoch) == step else None

    def items(self, step: int) -> list[int]:
        """Return the numbers of the items of a step, in order."""
        if self.across_epochs:
            begin = (step - 1) * self.batch_size
            end = min(begin + self.batch_size, self.epochs * self.num_items)
        else:
            batches = self.last_step(1)
            epoch, number = divmod(step - 1, batches)
            begin = epoch * self.num_items + number * self.batch_size
            end = min(begin + self.batch_size, (epoch + 1) * self.num_items)
        return list(self._slice(begin, end))

    def _slice(self, begin: int, end: int) -> Iterator[int]:
        """Yield the items at positions from `begin` to before `end`, counted over all epochs."""
        for epoch in range(begin // self.num_items, -(-end // self.num_items)):
            first = epoch * self.num_items
            numbers = _permutation(self.num_items, self.seed + epoch)
            yield from numbers[max(0, begin - first) : end - first]


@lru_cache(maxsize=2)
def _permutation(num_items: int, seed: int) -> list[int]:
    """Return the permutation of an epoch, which is the one of torch's DistributedSampler(seed)."""
    numbers: list[int] = torch.randperm(
        num_items, generator=torch.Generator().manual_seed(seed)
    ).tolist()
    return numbers
