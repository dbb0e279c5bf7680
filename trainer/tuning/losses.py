"""What a model loses by its scores of the choices of questions.

As in THUDM/GLM (commit 4f61ed7, finetune_glm.py); a loss here is of one question, so that a batch
may be split into any parts.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.tuning.kinds import CROSS_ENTROPY, GENERATIVE, HINGE

NO_CHOICE = -10_000.0
"""The score of a choice that a question lacks, where others of the batch have it."""


def penalized(scores: Tensor, num_targets: Tensor, penalty: float) -> Tensor:
    """Return scores float[r] of rows, divided by (number of targets)^penalty if that is above 0."""
    return scores / num_targets.clamp(min=1) ** penalty if penalty > 0 else scores


def by_question(scores: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the scores float[r] of rows as float[q, k], a row per question, k the most choices.

    Args:
        scores: of all choices of the first question, then of the second, ….
        sizes: how many choices each question has.
    """
    widest = max(sizes)
    if all(size == widest for size in sizes):
        return scores.view(len(sizes), widest)
    parts = torch.split(scores, list(sizes))
    return torch.stack([F.pad(part, (0, widest - len(part)), value=NO_CHOICE) for part in parts])


def losses(scores: Tensor, labels: Tensor, kind: str) -> Tensor:
    """Return the loss of each question, float32[q]; their mean is the loss of a batch.

    Args:
        scores: float32[q, k], of its choices.
        labels: int64[q], the number of the right one.
        kind: one of `LOSSES`. cross_entropy: of a softmax over the scores. hinge: by how much each
            wrong score is not 1 below the right one. generative: the right score, negated. mix:
            generative + cross_entropy.
    """
    right = scores.gather(1, labels[:, None])
    if kind == HINGE:
        return (1 + scores - right).clamp(min=0).sum(1) - 1
    entropy = F.cross_entropy(scores, labels, reduction="none")
    if kind == CROSS_ENTROPY:
        return entropy
    return -right[:, 0] if kind == GENERATIVE else entropy - right[:, 0]
