"""A step of fine-tuning, and an evaluation, on DeepSpeed's engine.

The loss of a step is the mean over the examples of the global batch, or over their answers' tokens
where texts are written, however the batch is split into ranks and micro-batches.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from shards.errors import UserError
from trainer.distributed import CollectiveError, Ranks
from trainer.engine import DeepSpeedEngine
from trainer.finetune.scoring import NO_ANSWER, Prediction, Scoring, losses
from trainer.metrics import StepResult
from trainer.model.loss import LossSums
from trainer.tasks.collate import collate, pack, to_device
from trainer.tasks.rows import Example, Row, rows_of

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class FinetuneEngine:
    """The engine of a run, and how it learns and answers."""

    engine: DeepSpeedEngine
    scoring: Scoring
    loss: str
    """One of `LOSSES`."""
    ranks: Ranks

    def train_step(
        self, examples: Sequence[Example], *, lr: float, seed: int, step: int
    ) -> tuple[StepResult, float]:
        """Take a step; all ranks call this with the same examples.

        Returns the accuracy too: the share of the examples answered right, or of the tokens where
        texts are written.

        Args:
            examples: the global batch; each rank learns from its part.
            lr: learning rate.
            seed: of dropout.
            step: its number.
        """
        rows = rows_of(examples)
        units: Sequence[Any] = examples
        total = len(examples)
        measure: Callable[[Sequence[Any]], tuple[Tensor, Tensor]] = self._measure_choices
        if not self.scoring.has_choices:
            units = pack(rows)
            total, measure = sum(len(row.answer) for row in rows), self._measure_texts
        counted: list[Tensor] = []

        def loss_of(part: Sequence[Any], share: int) -> Tensor:
            lost, right = measure(part)
            counted.append(share * torch.stack([lost.detach(), right]).double())
            return lost * (share * self.ranks.world / max(total, 1))

        parts = [partial(loss_of, part, share) for part, share in self._parts(units)]
        applied, grad_norm = self.engine.train_micro_batches(parts, lr=lr, seed=seed, step=step)
        loss_sum, right_sum = self.ranks.sum(torch.stack(counted).sum(0).cpu()).tolist()
        outcome = StepResult(
            loss=loss_sum / max(total, 1),
            num_tokens=sum(map(len, rows)),
            num_samples=len(examples),
            applied=applied,
            grad_norm=grad_norm,
        )
        return outcome, right_sum / max(total, 1)

    def predict(
        self, examples: Sequence[Example], *, stop: Callable[[], int] = lambda: 0
    ) -> list[Prediction] | None:
        """Return predictions for examples, in their order, or None if stopped; learn nothing.

        Args:
            examples: all ranks give the same; each computes its part.
            stop: called between batches, with the same result on all ranks; nonzero: stop.

        Raises:
            CollectiveError: the scores of an example are not finite.
        """
        own = []
        with self.engine.eval_mode(eager=True):
            for part, share in self._parts(examples):
                outputs = self._forward(self.scoring.batch(part))
                own.extend(self.scoring.predictions(outputs, part)[: len(part) * share])
                if stop():
                    break
        if stop():
            return None
        given = [one for share in self.ranks.gather(own) for one in share]
        for example, one in zip(examples, given, strict=True):
            if one.answer == NO_ANSWER:
                raise CollectiveError(
                    f"the model's scores of {example.guid} are not finite numbers: its weights "
                    "have most likely diverged. Start again in another --save, with a lower --lr "
                    "or a longer --warmup, in bf16 or fp32 rather than fp16."
                )
        return given

    def _parts(self, units: Sequence[_T]) -> Iterator[tuple[Sequence[_T], int]]:
        """Yield this rank's micro-batches, as many on every rank, and a share.

        The share is 1; or 0 where a rank has none left and computes a unit of others again, which
        counts nothing.
        """
        size, share = self.engine.micro_batch, -(-len(units) // self.ranks.world)
        first = share * self.ranks.rank
        for begin in range(first, first + share, size):
            part = units[begin : min(begin + size, first + share)]
            yield (part, 1) if part else (units[:1], 0)

    def _forward(self, batch: dict[str, Tensor]) -> LossSums | Tensor:
        outputs: LossSums | Tensor = self.engine.wrapped(to_device(batch, self.ranks.device))
        return outputs

    def _measure_choices(self, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """Return the sum of the losses, and how many examples were right."""
        scores = self.scoring.scores(self._forward(self.scoring.batch(examples)), examples)
        labels = torch.tensor([_label(example) for example in examples], device=scores.device)
        right = scores.detach().argmax(1) == labels
        return losses(scores, labels, self.loss).sum(), right.sum()

    def _measure_texts(self, lines: Sequence[Sequence[Row]]) -> tuple[Tensor, Tensor]:
        """Return the sum of the losses, and how many tokens were right."""
        sums = self._forward(collate(lines, pad=self.scoring.pad, isolate=True))
        assert isinstance(sums, LossSums)
        return sums.loss.sum(), sums.correct.sum()


def _label(example: Example) -> int:
    """Return the number of the right choice; in training every example has one."""
    if example.label is None:
        raise UserError(f"{example.guid} has no label, and training needs one.")
    return example.label
