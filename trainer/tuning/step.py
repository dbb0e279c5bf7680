"""A step of fine-tuning, and an evaluation, on DeepSpeed's engine.

The loss of a step is the mean over the questions of the global batch, or over their answers' tokens
where texts are asked for, however the batch is split into ranks and micro-batches.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from shards.errors import UserError
from trainer.model.dropout import Seeds
from trainer.ranks import AgreedError, Ranks
from trainer.step import Outcome, Stepper
from trainer.tasks.collate import placed
from trainer.tasks.question import Question
from trainer.tuning.answers import NONE, Answer, answers_in
from trainer.tuning.batches import Scoring, Unit, longest, num_rows, target_count
from trainer.tuning.losses import losses
from trainer.tuning.model import Outputs


class _Part(NamedTuple):
    """A micro-batch."""

    units: Sequence[Unit]
    slots: range
    """The places of its rows among those of the global batch."""
    share: int
    """1, or 0 where it counts nothing."""


@dataclass(frozen=True, kw_only=True)
class Tuner:
    """The engine of a run, and how it learns and answers."""

    stepper: Stepper
    scoring: Scoring
    loss: str
    """One of `LOSSES`."""
    ranks: Ranks

    def learn(
        self, questions: Sequence[Question], *, lr: float, seed: int, step: int
    ) -> tuple[Outcome, float]:
        """Take a step; all ranks call this with the same questions.

        Returns the accuracy too: the share of the questions answered right, or of the tokens where
        texts are asked for.

        Args:
            questions: the global batch; each rank learns from its part.
            lr: learning rate.
            seed: of dropout.
            step: its number.
        """
        total = len(questions) if self.scoring.chosen else target_count(questions)
        counted: list[Tensor] = []

        def loss_of(part: _Part, seeds: Seeds) -> Tensor:
            lost, right = self._lost(
                part.units, self._forward(part.units, width=width, seeds=seeds)
            )
            counted.append(part.share * torch.stack([lost.detach(), right]).double())
            return lost * (part.share * self.ranks.world / max(total, 1))

        units = self.scoring.units(questions)
        # Kernels that draw dropout themselves draw as many numbers as a micro-batch is wide.
        width = longest(units) if self.ranks.device.type == "cuda" else 0
        parts = list(self._parts(units))
        applied, grad_norm = self.stepper.learn(
            [(part.slots, partial(loss_of, part)) for part in parts],
            lr=lr,
            seed=seed,
            step=step,
            purpose="head",
        )
        sums = self.ranks.sum(torch.stack(counted).sum(0).cpu())
        loss_sum, right_sum = sums.tolist()
        outcome = Outcome(
            loss=loss_sum / max(total, 1),
            num_tokens=sum(len(row) for question in questions for row in question.rows),
            num_samples=len(questions),
            applied=applied,
            grad_norm=grad_norm,
            is_finite=math.isfinite(loss_sum),
        )
        return outcome, right_sum / max(total, 1)

    def answer(
        self, questions: Sequence[Question], *, stop: Callable[[], int] = lambda: 0
    ) -> list[Answer] | None:
        """Return the answers to questions, in their order, or None if stopped; learn nothing.

        Args:
            questions: all ranks give the same; each computes its part.
            stop: called between batches, with the same result on all ranks; nonzero: stop.

        Raises:
            AgreedError: the scores of a question are not finite.
        """
        own = []
        with self.stepper.answering():
            for part in self._parts(questions):
                answers = answers_in(self._forward(part.units), part.units, self.scoring)
                own.extend(answers[: len(part.units) * part.share])
                if stop():
                    break
        if stop():
            return None
        given = [answer for share in self.ranks.gather(own) for answer in share]
        for question, answer in zip(questions, given, strict=True):
            if answer.prediction == NONE:
                raise AgreedError(
                    f"the model's scores of {question.guid} are not finite numbers: its weights "
                    "have most likely diverged. Start again in another --save, with a lower --lr "
                    "or a longer --warmup, in bf16 or fp32 rather than fp16."
                )
        return given

    def _parts(self, units: Sequence[Unit]) -> Iterator[_Part]:
        """Yield this rank's micro-batches, as many on every rank.

        Where a rank has none left it computes a unit of others again, which counts nothing.
        """
        size, share = self.stepper.micro_batch, -(-len(units) // self.ranks.world)
        first = share * self.ranks.rank
        ends = [0, *accumulate(map(num_rows, units))]
        for begin in range(first, first + share, size):
            end = min(begin + size, first + share, len(units))
            if begin < end:
                yield _Part(units[begin:end], range(ends[begin], ends[end]), 1)
            else:
                yield _Part(units[:1], range(ends[1]), 0)

    def _forward(
        self, part: Sequence[Unit], *, width: int = 0, seeds: Seeds | None = None
    ) -> Outputs:
        batch = placed(self.scoring.batch(part, width=width), self.ranks.device)
        outputs: Outputs = self.stepper.engine(batch, seeds=seeds)
        return outputs

    def _lost(self, part: Sequence[Unit], outputs: Outputs) -> tuple[Tensor, Tensor]:
        """Return the sum of the losses, and how many questions or tokens were right."""
        if not self.scoring.chosen:
            return outputs.loss.sum(), outputs.correct.sum()
        scores = self.scoring.scores(outputs, [num_rows(unit) for unit in part])
        labels = torch.tensor([_label(unit) for unit in part], device=scores.device)
        right = scores.detach().argmax(1) == labels
        return losses(scores, labels, self.loss).sum(), right.sum()


def _label(unit: Unit) -> int:
    """Return the number of the right choice; in training every question has one."""
    assert isinstance(unit, Question)
    if unit.label is None:
        raise UserError(f"{unit.guid} has no label, and training needs one.")
    return unit.label
