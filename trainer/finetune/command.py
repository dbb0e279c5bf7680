"""The command `python -m trainer.finetune`: a run that learns a task, and tells how well.

python -m trainer.finetune --task copa --data COPA --init-from build/run --save build/copa
deepspeed --module trainer.finetune …        torchrun --nproc-per-node 8 -m trainer.finetune …
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from shards.interrupt import ended_by_interrupt
from trainer.tuning.settings import Tuning

if TYPE_CHECKING:
    from trainer.ranks import Ranks


@dataclass(frozen=True, kw_only=True)
class Finetune(Tuning):
    """Trains a model on a task."""

    PROGRAM = "trainer.finetune"

    def prepared(self, *, world: int) -> Self:
        """Return the flags, nothing left open."""
        return self.sized(world=world)

    def work(self, asked: Tuning, ranks: "Ranks") -> int:
        """Train."""
        with ended_by_interrupt():
            from trainer.finetune.finetuning import finetune  # noqa: PLC0415  loads torch
        return finetune(asked, ranks)
