"""Questions as batches of rows, and what comes back of them, question by question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.tasks.collate import collate
from trainer.tasks.question import Question, rows_of
from trainer.tuning.losses import by_question, penalized
from trainer.tuning.model import ABSENT, Outputs
from trainer.tuning.packing import PADDING, Packed, collate_packed, packed

Unit = Question | Packed


def are_chosen(questions: Sequence[Question]) -> bool:
    """Return whether the questions of a task offer choices or words, not ask for texts."""
    return any(len(question.rows) > 1 or question.words for question in questions)


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How the outputs of rows become scores of choices."""

    pad: int
    """The token that fills rows up."""
    chosen: bool
    """Whether questions offer choices or words (`are_chosen`)."""
    penalty: float = 0.0
    """Scores are divided by (number of targets)^penalty if that is above 0."""

    def units(self, questions: Sequence[Question]) -> list[Unit]:
        """Return what a step's questions are learnt as: texts share rows, choices stay as is."""
        if self.chosen or not questions:
            return list(questions)
        return list(packed(rows_of(questions)))

    def batch(self, units: Sequence[Unit], *, width: int = 0) -> dict[str, Tensor]:
        """Return units, 1 or more of one kind, as a batch for `TunedGLM.forward`.

        Args:
            units: questions, or packed rows.
            width: the least number of tokens in its rows.
        """
        joined = [unit for unit in units if isinstance(unit, Packed)]
        if joined:
            return self._widened(collate_packed(joined, pad=self.pad), width)
        questions = [unit for unit in units if isinstance(unit, Question)]
        batch = collate(rows_of(questions), pad=self.pad)
        if questions[0].words:
            widest = max(len(question.words) for question in questions)
            words = [[*q.words, *[ABSENT] * (widest - len(q.words))] for q in questions]
            batch["words"] = torch.tensor(words)
        return self._widened(batch, width)

    def scores(self, outputs: Outputs, sizes: Sequence[int]) -> Tensor:
        """Return the scores of each question's choices, float32[q, k], with gradients.

        Args:
            outputs: of their rows.
            sizes: how many rows each question has.
        """
        if outputs.scores.shape[1] > 1:
            return outputs.scores
        scores = penalized(outputs.scores[:, 0], outputs.num_targets, self.penalty)
        return by_question(scores, sizes)

    def _widened(self, batch: Mapping[str, Tensor], width: int) -> dict[str, Tensor]:
        """Return a batch whose rows have at least so many tokens."""
        more = max(0, width - batch["tokens"].shape[1])
        fills = {"tokens": self.pad, "pieces": PADDING}
        return {
            name: F.pad(tensor, (0, more), value=fills.get(name, 0))
            if tensor.dim() > 1 and name != "words"
            else tensor
            for name, tensor in batch.items()
        }


def num_rows(unit: Unit) -> int:
    """Return how many rows of a batch a unit takes."""
    return len(unit.rows) if isinstance(unit, Question) else 1


def longest(units: Sequence[Unit]) -> int:
    """Return the number of tokens of the longest row of units."""
    return max(
        len(row)
        for unit in units
        for row in (unit.rows if isinstance(unit, Question) else (unit.row,))
    )


def target_count(questions: Sequence[Question]) -> int:
    """Return how many tokens the answers of questions have."""
    rows = chain.from_iterable(question.rows for question in questions)
    return sum(int(row.loss_mask.sum()) for row in rows)
