"""The weights in any checkpoint that the trainer knows."""

import io
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from shards.errors import UserError
from trainer.checkpoints.torch_file import deepspeed_types, explain_damage, read, weights_only
from trainer.weights.config_json import is_hugging_face
from trainer.weights.hugging_face import read_hugging_face
from trainer.weights.published import read_published
from trainer.weights.weights import Part, Weights


def read_weights(path: Path, *, vocab_size: int) -> Weights:
    """Return the weights in a checkpoint of this trainer, a published one, or transformers' GPT-2.

    Args:
        path: a file or a folder; of a run the folder of a checkpoint (`usable_checkpoint`).
        vocab_size: rows of the model's embedding.

    Raises:
        UserError: there are none.
        DamageError: a file is damaged.
    """
    if is_hugging_face(path):
        return read_hugging_face(path, vocab_size=vocab_size)
    is_partitioned = any(path.glob("whole-*.json")) and any(path.glob("*optim_states.pt"))
    return _read_partitioned(path) if is_partitioned else read_published(path)


def _read_partitioned(folder: Path) -> Weights:
    """Return the weights in fp32 of which each rank wrote a part, at ZeRO stage 1, 2 or 3.

    DeepSpeed's own reader joins them.

    Raises:
        UserError: a file holds more than tensors and plain values, or cannot be read.
        DamageError: a file is missing, or does not fit the others.
    """
    from deepspeed.utils import zero_to_fp32  # noqa: PLC0415 - reads DS_ACCELERATOR when imported

    types, told = deepspeed_types(), io.StringIO()
    problem = f"DeepSpeed cannot join the weights in {folder}"
    try:
        with (
            explain_damage(folder, problem, ". Copy all files of the checkpoint again."),
            weights_only(types),
            redirect_stdout(told),
            redirect_stderr(told),
        ):
            joined: Mapping[str, Part] = zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint(
                str(folder.parent), folder.name, lazy_mode=True
            )
    except UserError:
        for path in sorted(folder.glob("*.pt")):
            read(path, types)  # which says what file it is, if it is one alone
        raise
    return Weights(parts={name: [part] for name, part in joined.items()}, source=folder)
