"""A step of fine-tuning, and an evaluation, on DeepSpeed's engine.

The loss of a step is the mean over the questions of the global batch, or over their answers' tokens
where texts are asked for, however the batch is split into ranks and micro-batches.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from shards.errors import UserError
from trainer.distributed import CollectiveError, Ranks
from trainer.engine import DeepSpeedEngine, StepResult
from trainer.finetune.batches import NONE, Prediction, Scoring, answers_in, losses, packed
from trainer.model.loss import LossSums
from trainer.tasks.collate import placed
from trainer.tasks.rows import Example, rows_of


@dataclass(frozen=True, kw_only=True)
class Tuner:
    """The engine of a run, and how it learns and answers."""

    engine: DeepSpeedEngine
    scoring: Scoring
    loss: str
    """One of `LOSSES`."""
    ranks: Ranks

    def learn(
        self, questions: Sequence[Example], *, lr: float, seed: int, step: int
    ) -> tuple[StepResult, float]:
        """Take a step; all ranks call this with the same questions.

        Returns the accuracy too: the share of the questions answered right, or of the tokens where
        texts are asked for.

        Args:
            questions: the global batch; each rank learns from its part.
            lr: learning rate.
            seed: of dropout.
            step: its number.
        """
        rows, chosen = rows_of(questions), self.scoring.chosen
        total = len(questions) if chosen else sum(int(row.loss_mask.sum()) for row in rows)
        counted: list[Tensor] = []

        def loss_of(units: Sequence[Example], share: int) -> Tensor:
            lost, right = self._lost(units, self._forward(units))
            counted.append(share * torch.stack([lost.detach(), right]).double())
            return lost * (share * self.ranks.world / max(total, 1))

        units = questions if chosen else packed(questions)
        parts = [partial(loss_of, part, share) for part, share in self._parts(units)]
        applied, grad_norm = self.engine.learn(parts, lr=lr, seed=seed, step=step)
        loss_sum, right_sum = self.ranks.sum(torch.stack(counted).sum(0).cpu()).tolist()
        outcome = StepResult(
            loss=loss_sum / max(total, 1),
            num_tokens=sum(map(len, rows)),
            num_samples=len(questions),
            applied=applied,
            grad_norm=grad_norm,
        )
        return outcome, right_sum / max(total, 1)

    def answer(
        self, questions: Sequence[Example], *, stop: Callable[[], int] = lambda: 0
    ) -> list[Prediction] | None:
        """Return the answers to questions, in their order, or None if stopped; learn nothing.

        Args:
            questions: all ranks give the same; each computes its part.
            stop: called between batches, with the same result on all ranks; nonzero: stop.

        Raises:
            CollectiveError: the scores of a question are not finite.
        """
        own = []
        with self.engine.answering():
            for part, share in self._parts(questions):
                answers = answers_in(self._forward(part), part, self.scoring)
                own.extend(answers[: len(part) * share])
                if stop():
                    break
        if stop():
            return None
        given = [answer for share in self.ranks.gather(own) for answer in share]
        for question, answer in zip(questions, given, strict=True):
            if answer.answer == NONE:
                raise CollectiveError(
                    f"the model's scores of {question.guid} are not finite numbers: its weights "
                    "have most likely diverged. Start again in another --save, with a lower --lr "
                    "or a longer --warmup, in bf16 or fp32 rather than fp16."
                )
        return given

    def _parts(self, units: Sequence[Example]) -> Iterator[tuple[Sequence[Example], int]]:
        """Yield this rank's micro-batches, as many on every rank, and a share.

        The share is 1; or 0 where a rank has none left and computes a unit of others again, which
        counts nothing.
        """
        size, share = self.engine.micro_batch, -(-len(units) // self.ranks.world)
        first = share * self.ranks.rank
        for begin in range(first, first + share, size):
            part = units[begin : min(begin + size, first + share)]
            yield (part, 1) if part else (units[:1], 0)

    def _forward(self, units: Sequence[Example]) -> LossSums | Tensor:
        batch = placed(self.scoring.batch(units), self.ranks.device)
        outputs: LossSums | Tensor = self.engine.wrapped(batch)
        return outputs

    def _lost(self, units: Sequence[Example], outputs: LossSums | Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of the losses, and how many questions or tokens were right."""
        if not self.scoring.chosen:
            assert isinstance(outputs, LossSums)
            return outputs.loss.sum(), outputs.correct.sum()
        scores = self.scoring.scores(outputs, units)
        labels = torch.tensor([_label(unit) for unit in units], device=scores.device)
        right = scores.detach().argmax(1) == labels
        return losses(scores, labels, self.loss).sum(), right.sum()


def _label(question: Example) -> int:
    """Return the number of the right choice; in training every question has one."""
    if question.label is None:
        raise UserError(f"{question.guid} has no label, and training needs one.")
    return question.label
