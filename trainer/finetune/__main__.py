"""Trains a model on a task, and tells how well it does it.

python -m trainer.finetune --task copa --data COPA --init-from build/run --save build/copa
deepspeed --module trainer.finetune …        torchrun --nproc-per-node 8 -m trainer.finetune …
"""

from typing import TYPE_CHECKING

from shards.interrupt import ended_by_interrupt
from trainer.command import run_on_ranks
from trainer.tuning.settings import Config, parse

if TYPE_CHECKING:
    from trainer.ranks import Ranks


def _finetune(config: Config, ranks: "Ranks") -> int:
    with ended_by_interrupt():
        from trainer.finetune.finetuning import finetune  # noqa: PLC0415  loads torch
    return finetune(config, ranks)


if __name__ == "__main__":
    run_on_ranks("trainer.finetune", parse, _finetune)
