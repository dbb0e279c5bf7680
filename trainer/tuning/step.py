"""A step of fine-tuning, and an evaluation, on DeepSpeed's engine.

The loss of a step is the mean over the questions of the global batch, or over their answers' tokens
where texts are asked for, however the batch is split into ranks and micro-batches.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from shards.errors import UserError
from shards.order.permutation import derive, text_key
from trainer.ranks import Ranks
from trainer.step import Stepper
from trainer.tasks.question import Question
from trainer.tasks.rows import placed
from trainer.tuning.batches import Scoring, target_count
from trainer.tuning.losses import losses
from trainer.tuning.model import Outputs


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Of a step, the same on every rank."""

    loss: float
    accuracy: float
    """Share of the questions answered right, or of the tokens where texts are asked for."""
    num_tokens: int
    """Of the global batch, padding not counted."""
    grad_norm: float
    """Before clipping."""
    applied: bool
    """Whether the weights changed; they do not if the loss or a gradient was not finite."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a model gives for a question."""

    prediction: int
    """The number of the best choice, word or class; 1 or 0 for a text that is the most probable or
    not."""
    loss: float
    """Of a text in nats, summed over its tokens."""
    correct: int
    """Tokens of a text that were the most probable ones."""
    num_targets: int


@dataclass(frozen=True, kw_only=True)
class Tuner:
    """The engine of a run, and how it learns and answers."""

    stepper: Stepper
    scoring: Scoring
    loss: str
    """One of `LOSSES`."""
    ranks: Ranks

    def learn(self, questions: Sequence[Question], *, lr: float, seed: int, step: int) -> Outcome:
        """Take a step; all ranks call this with the same questions.

        Args:
            questions: the global batch; each rank learns from its part.
            lr: learning rate.
            seed: of dropout.
            step: its number.
        """
        engine = self.stepper.engine
        total = len(questions) if self.scoring.chosen else target_count(questions)
        torch.manual_seed(_dropout_seed(seed, step, self.ranks.rank))
        for group in engine.optimizer.param_groups:
            group["lr"] = lr
        figures = torch.zeros(2, dtype=torch.float64)
        parts = list(self._parts(questions))
        for i, (part, is_real) in enumerate(parts):
            engine.set_gradient_accumulation_boundary(i == len(parts) - 1)
            outputs = self._forward(part, pack=True)
            lost, right = self._lost(part, outputs)
            loss = lost * (is_real * self.ranks.world / max(total, 1))
            # As in Stepper: all ranks skip a step whose loss is not finite on one of them.
            loss = loss * torch.where(loss.isfinite(), 1.0, math.nan)
            engine.backward(loss, scale_wrt_gas=False)
            figures += is_real * torch.stack([lost.detach(), right]).double().cpu()
        applied, grad_norm = self.stepper.apply()
        loss_sum, right_sum = self.ranks.sum(figures).tolist()
        return Outcome(
            loss=loss_sum / max(total, 1),
            accuracy=right_sum / max(total, 1),
            num_tokens=sum(len(row) for question in questions for row in question.rows),
            grad_norm=grad_norm,
            applied=applied,
        )

    def answer(
        self, questions: Sequence[Question], *, stop: Callable[[], int] = lambda: 0
    ) -> list[Answer] | None:
        """Return the answers to questions, in their order, or None if stopped; learn nothing.

        Args:
            questions: all ranks give the same; each computes its part.
            stop: called between batches, with the same result on all ranks; nonzero: stop.
        """
        engine, own = self.stepper.engine, []
        engine.eval()
        with torch.no_grad():
            for part, is_real in self._parts(questions):
                answers = self._answers(part, self._forward(part))
                own.extend(answers[: len(part) * is_real])
                if stop():
                    break
        engine.train()
        if stop():
            return None
        shares = self.ranks.gather(own)
        places = {rank: iter(share) for rank, share in enumerate(shares)}
        return [next(places[i % self.ranks.world]) for i in range(len(questions))]

    def _parts(self, questions: Sequence[Question]) -> Iterator[tuple[Sequence[Question], int]]:
        """Yield this rank's micro-batches, as many on every rank, each with 1.

        Where a rank has none left it computes one question again, with 0: it counts nothing.
        """
        world, size = self.ranks.world, self.stepper.micro_batch
        own = questions[self.ranks.rank :: world]
        for begin in range(0, -(-len(questions) // world), size):
            part = own[begin : begin + size]
            yield (part, 1) if part else (questions[:1], 0)

    def _forward(self, part: Sequence[Question], *, pack: bool = False) -> Outputs:
        outputs: Outputs = self.stepper.engine(
            placed(self.scoring.batch(part, pack=pack), self.ranks.device)
        )
        return outputs

    def _lost(self, part: Sequence[Question], outputs: Outputs) -> tuple[Tensor, Tensor]:
        """Return the sum of the losses, and how many questions or tokens were right."""
        if not self.scoring.chosen:
            return outputs.loss.sum(), outputs.correct.sum()
        scores = self.scoring.scores(outputs, part)
        labels = torch.tensor([_label(question) for question in part], device=scores.device)
        right = scores.detach().argmax(1) == labels
        return losses(scores, labels, self.loss).sum(), right.sum()

    def _answers(self, part: Sequence[Question], outputs: Outputs) -> list[Answer]:
        greedy = (outputs.correct == outputs.num_targets).int()
        chosen = self.scoring.scores(outputs, part).argmax(1) if self.scoring.chosen else greedy
        columns = [chosen.tolist(), *([0] * len(part) for _ in range(3))]
        if not self.scoring.chosen:
            columns[1:] = [column.tolist() for column in outputs[1:]]
        return [
            Answer(prediction=choice, loss=loss, correct=correct, num_targets=count)
            for choice, loss, correct, count in zip(*columns, strict=True)
        ]


def _dropout_seed(seed: int, step: int, rank: int) -> int:
    key = np.array([text_key(seed, "dropout")], np.uint64)
    return int(derive(derive(key, np.array([step])), np.array([rank]))[0])


def _label(question: Question) -> int:
    if question.label is None:
        raise UserError(f"{question.guid} has no label, and training needs one.")
    return question.label
