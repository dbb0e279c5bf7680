"""fp32 weights of which each rank wrote a part, joined by DeepSpeed's reader."""

import io
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from trainer.checkpoints.torch_file import deepspeed_types, explain_damage, weights_only
from trainer.weights.weights import Part, Weights


def is_partitioned(folder: Path) -> bool:
    """Return whether each rank wrote a part of the weights in a checkpoint."""
    return any(folder.glob("whole-*.json")) and any(folder.glob("*optim_states.pt"))


def read_zero(folder: Path) -> Weights:
    """Return the weights in a checkpoint of ZeRO stage 1, 2 or 3.

    Raises:
        UserError: a file holds more than tensors and plain values, or cannot be read.
        DamageError: a file is missing, or does not fit the others.
    """
    from deepspeed.utils import zero_to_fp32  # noqa: PLC0415 - reads DS_ACCELERATOR when imported

    problem = f"DeepSpeed cannot join the weights in {folder}"
    with (
        explain_damage(folder, problem, ". Copy all files of the checkpoint again."),
        weights_only(deepspeed_types()),
        redirect_stdout(io.StringIO()),  # it tells of every file
        redirect_stderr(io.StringIO()),
    ):
        joined: Mapping[str, Part] = zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint(
            str(folder.parent), folder.name, lazy_mode=True
        )
    return Weights(parts={name: [part] for name, part in joined.items()}, source=folder)
