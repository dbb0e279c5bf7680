"""The head of a classifier: a few numbers from one place of a row, as in THUDM/GLM.

The model's hidden state at that place goes through a linear layer and tanh, dropout, and a linear
layer to the classes, or to one number per choice (commit 4f61ed7, model/downstream).
"""

import torch
from torch import Tensor, nn

from trainer.model.dropout import Seeds, classifier_dropout


class Head(nn.Module):
    """A classifier over hidden states."""

    def __init__(
        self, hidden_size: int, classes: int, *, pool: str = "cls", dropout: float = 0.1
    ) -> None:
        """Make a head with fresh weights.

        Args:
            hidden_size: of the model.
            classes: how many numbers it gives for a row; 1 where each choice has a row.
            pool: one of POOLS of tasks/task.py.
            dropout: before the last layer, in training.
        """
        super().__init__()
        self.pool = pool
        self.pool_layer = nn.Linear(hidden_size, hidden_size)
        self.dropout = dropout
        self.output = nn.Linear(hidden_size, classes)

    def forward(self, hidden: Tensor, lengths: Tensor, seeds: Seeds | None = None) -> Tensor:
        """Return float32[b, classes] of hidden states [b, n, h] of rows that are so long.

        Args:
            hidden: the states.
            lengths: int64[b], of the rows.
            seeds: of dropout while training; None: they come from PyTorch's generator.
        """
        places = {"cls": torch.zeros_like(lengths), "pad": lengths - 1, "start": lengths}
        rows = torch.arange(len(hidden), device=hidden.device)
        pooled = torch.tanh(self.pool_layer(hidden[rows, places[self.pool]]))
        if self.training and self.dropout:
            seeds = seeds or Seeds.random(len(pooled), pooled.device)
            pooled = classifier_dropout(pooled, self.dropout, seeds)
        numbers: Tensor = self.output(pooled)
        return numbers.float()
