"""Takes fine-tuning steps and makes predictions with DeepSpeed's engine.

The loss of a step is the mean over the examples of the global batch or, for tasks that generate
text, over the tokens of the answers. It does not depend on how the batch is split into ranks and
micro-batches.
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
    """Trains on examples and predicts their answers with the engine of a run."""

    engine: DeepSpeedEngine
    scoring: Scoring
    loss: str
    """The loss of examples with choices: one of `LOSSES`."""
    ranks: Ranks

    def train_step(
        self, examples: Sequence[Example], *, lr: float, seed: int, step: int
    ) -> tuple[StepResult, float]:
        """Take a step; return its result and its accuracy. All ranks pass the same examples.

        The accuracy is the share of examples with the right answer or, for tasks that generate
        text, the share of right tokens.

        Args:
            examples: the global batch; each rank trains on its part.
            lr: the learning rate.
            seed: the seed of dropout.
            step: the number of the step.
        """
        rows = rows_of(examples)
        units: Sequence[Any] = examples
        total = len(examples)
        measure: Callable[[Sequence[Any]], tuple[Tensor, Tensor]] = self._measure_choices
        if not self.scoring.has_choices:
            units = pack(rows)
            total, measure = sum(len(row.answer) for row in rows), self._measure_texts
        counted: list[Tensor] = []

        def loss_of(part: Sequence[Any], weight: int) -> Tensor:
            loss, right = measure(part)
            counted.append(weight * torch.stack([loss.detach(), right]).double())
            return loss * (weight * self.ranks.world / max(total, 1))

        parts = [partial(loss_of, part, weight) for part, weight in self._parts(units)]
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
        """Return predictions for examples, in their order, without training; None if the run stops.

        Args:
            examples: the examples, the same on all ranks; each rank computes its part.
            stop: a function that is called after each batch, with the same result on all ranks; if
                the result is not 0, this returns None.

        Raises:
            CollectiveError: the scores of an example are not finite.
        """
        own = []
        with self.engine.eval_mode(eager=True):
            for part, weight in self._parts(examples):
                outputs = self._forward(self.scoring.batch(part))
                own.extend(self.scoring.predictions(outputs, part)[: len(part) * weight])
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
        """Yield this rank's micro-batches, equally many on every rank, and the weight of each.

        The weight is 1, or 0 if the rank has no units left and computes the first unit again.
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
        """Return the sum of the losses, and the number of examples with the right answer."""
        scores = self.scoring.scores(self._forward(self.scoring.batch(examples)), examples)
        labels = torch.tensor([_label(example) for example in examples], device=scores.device)
        right = scores.detach().argmax(1) == labels
        return losses(scores, labels, self.loss).sum(), right.sum()

    def _measure_texts(self, lines: Sequence[Sequence[Row]]) -> tuple[Tensor, Tensor]:
        """Return the sum of the losses, and the number of right tokens."""
        sums = self._forward(collate(lines, pad=self.scoring.pad, isolate=True))
        assert isinstance(sums, LossSums)
        return sums.loss.sum(), sums.correct.sum()


def _label(example: Example) -> int:
    """Return the number of the right choice, which every training example needs.

    Raises:
        UserError: the example has no label.
    """
    if example.label is None:
        raise UserError(f"{example.guid} has no label, and training needs one.")
    return example.label
