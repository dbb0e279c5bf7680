"""Questions as batches of rows, and what comes back of them, question by question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.tasks.question import Question, rows_of
from trainer.tasks.rows import collate
from trainer.tuning.losses import by_question, penalized
from trainer.tuning.model import ABSENT, Outputs
from trainer.tuning.packing import packed


def are_chosen(questions: Sequence[Question]) -> bool:
    """Return whether the questions of a task offer choices, words or classes, not ask for texts."""
    return any(
        len(question.rows) > 1 or question.words or question.classes for question in questions
    )


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How the outputs of rows become scores of choices."""

    pad: int
    """The token that fills rows up."""
    chosen: bool
    """Whether questions offer choices, words or classes (`are_chosen`)."""
    penalty: float = 0.0
    """Scores are divided by (number of targets)^penalty if that is above 0."""

    def batch(self, questions: Sequence[Question], *, pack: bool = False) -> dict[str, Tensor]:
        """Return questions of one kind as a batch for `TunedGLM.forward`.

        Args:
            questions: 1 or more.
            pack: let texts that are asked for share a row, without seeing each other.
        """
        rows = rows_of(questions)
        if pack and not self.chosen:
            return packed(rows, pad=self.pad)
        batch = collate(rows, pad=self.pad)
        if questions[0].classes:
            return self._with_place_after(batch)
        if questions[0].words:
            widest = max(len(question.words) for question in questions)
            words = [[*q.words, *[ABSENT] * (widest - len(q.words))] for q in questions]
            return {**batch, "words": torch.tensor(words)}
        return batch

    def scores(self, outputs: Outputs, questions: Sequence[Question]) -> Tensor:
        """Return the scores of each question's choices, float32[q, k], with gradients."""
        if outputs.scores.shape[1] > 1:
            return outputs.scores
        scores = penalized(outputs.scores[:, 0], outputs.num_targets, self.penalty)
        return by_question(scores, [len(question.rows) for question in questions])

    def _with_place_after(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return a batch in which the longest row too has padding, where a head may look."""
        wider = {
            name: F.pad(tensor, (0, 1), value=self.pad if name == "tokens" else 0)
            for name, tensor in batch.items()
            if tensor.dim() > 1
        }
        return {**batch, **wider}


def target_count(questions: Sequence[Question]) -> int:
    """Return how many tokens the answers of questions have."""
    rows = chain.from_iterable(question.rows for question in questions)
    return sum(int(row.loss_mask.sum()) for row in rows)
