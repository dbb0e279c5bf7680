"""Copies the weights in a file or folder into a model, on one process or all ranks of a run."""

from pathlib import Path

from trainer.checkpoint import usable_checkpoint
from trainer.distributed import Ranks
from trainer.import_weights.read import read_weights
from trainer.import_weights.weights import Weights
from trainer.model.model import GLM


def load_weights(path: Path, model: GLM, *, extend_positions: bool = False) -> None:
    """Copy the weights of a checkpoint, published or of this trainer, into a model.

    Args:
        path: a file or a folder; for a run, the folder of one of its checkpoints.
        model: the model that receives the weights.
        extend_positions: whether the model may have more positions than the checkpoint.

    Raises:
        UserError: there is no checkpoint, or its model has a different shape.
    """
    weights = read_weights(path, vocab_size=model.config.vocab_size)
    weights.copy_into(model, extend_positions=extend_positions)


def broadcast_weights(path: Path, model: GLM, *, extend_positions: bool, ranks: Ranks) -> None:
    """Copy weights, like `load_weights`, into a model that `make_model` made; all ranks call this.

    The first rank reads one parameter at a time. At ZeRO stage 3 each rank immediately gets its
    part of the parameter; at lower stages DeepSpeed sends all parameters when it makes its engine.

    Raises:
        CollectiveError: there is no checkpoint, or its model has a different shape.
    """
    from deepspeed.runtime.zero import (  # noqa: PLC0415 - reads DS_ACCELERATOR when imported
        GatheredParameters,
    )

    named = dict(model.named_parameters())

    def read() -> Weights | None:
        if not ranks.is_first:
            return None
        checkpoint = usable_checkpoint(path)
        folder = path if checkpoint is None else checkpoint.folder
        weights = read_weights(folder, vocab_size=model.config.vocab_size)
        shapes = {name: getattr(p, "ds_shape", p.shape) for name, p in named.items()}
        weights.check(shapes, extend_positions=extend_positions)
        return weights

    weights = ranks.run_on_all_ranks(read)
    for name, parameter in named.items():
        is_split = hasattr(parameter, "ds_id")
        with GatheredParameters([parameter], modifier_rank=0, enabled=is_split):
            if weights is not None:
                weights.copy_to(name, parameter)
