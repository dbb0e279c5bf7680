"""Sums of loss by source of the text and by objective."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from trainer.distributed import Ranks
from trainer.model.loss import LossSums

TASKS = ("spans", "sentences", "generation", "causal")
"""Objectives by number: those of `blanks.objective.Objective`, then predicting the next token."""
CAUSAL_TASK = TASKS.index("causal")

_LOSS, _CORRECT, _TARGETS = range(3)


@dataclass(frozen=True)
class LossTally:
    """Sums over samples, by source and task; tallies can be added."""

    sources: tuple[str, ...]
    """Names; the figures of equal ones are merged."""
    sums: NDArray[np.float64]
    """[sources, tasks, 3]: loss in nats, correct tokens, tokens with loss."""

    @classmethod
    def empty(cls, sources: Sequence[str]) -> "LossTally":
        """Return a tally of no samples."""
        return cls(tuple(sources), np.zeros((len(sources), len(TASKS), 3)))

    def with_sources(self, sources: Sequence[str]) -> "LossTally":
        """Return this tally with further sources after its own."""
        wider = np.zeros((len(sources), *self.sums.shape[1:]))
        wider[: len(self.sums)] = self.sums
        return LossTally(tuple(sources), wider)

    def plus(self, batch: Mapping[str, torch.Tensor], sums: LossSums) -> "LossTally":
        """Return this tally with the samples of a batch added; waits for the device."""
        columns = torch.stack([column.detach().double() for column in sums]).cpu().numpy()
        source = batch["source"].cpu().numpy().astype(np.int64)
        task = batch["task"].cpu().numpy().astype(np.int64)
        cells = source * len(TASKS) + task
        size = len(self.sources) * len(TASKS)
        added = np.stack([np.bincount(cells, column, minlength=size) for column in columns], 1)
        return LossTally(self.sources, self.sums + added.reshape(self.sums.shape))

    def __add__(self, other: "LossTally") -> "LossTally":
        return LossTally(self.sources, self.sums + other.sums)

    def summed_over(self, ranks: Ranks) -> "LossTally":
        """Return the sum of this tally over all ranks; all of them call this."""
        return LossTally(self.sources, ranks.sum(torch.from_numpy(self.sums)).numpy())

    @property
    def num_targets(self) -> int:
        """Tokens with loss."""
        return int(self.sums[..., _TARGETS].sum())

    @property
    def loss(self) -> float:
        """In nats per token; 0 without any token."""
        return float(self.sums[..., _LOSS].sum() / max(1, self.num_targets))

    def figures(self) -> dict[str, float]:
        """Return loss and accuracy: in total, and by source and by task where there are several."""
        named_sums = {"": self.sums}
        by_task = {f"/{name}": self.sums[:, [i]] for i, name in enumerate(TASKS)}
        by_source = {
            f"/{name}": self.sums[[i for i, other in enumerate(self.sources) if other == name]]
            for name in self.sources
        }
        for groups in (by_task, by_source):
            nonempty = {name: sums for name, sums in groups.items() if sums[..., _TARGETS].any()}
            if len(nonempty) > 1:
                named_sums |= nonempty
        return {
            f"{figure}{name}": value
            for name, sums in named_sums.items()
            for figure, value in _figures(sums).items()
        }


def _figures(sums: NDArray[np.float64]) -> dict[str, float]:
    loss, correct, targets = sums.reshape(-1, 3).sum(axis=0).tolist()
    if not targets:
        return {"loss": float("nan"), "accuracy": float("nan")}
    return {"loss": loss / targets, "accuracy": correct / targets}
