"""A model as THUDM/GLM (commit 4f61ed7) and `--init-from` load it.

    OUTPUT/200/mp_rank_00_model_states.pt     {'module': {…}, 'iteration': 200}; one file for each
                                              rank of model parallelism
    OUTPUT/latest_checkpointed_iteration.txt  200
    OUTPUT/latest                             the same, for DeepSpeed

The reference's `--load-pretrained` takes it, and so does `--load` with `--no-deepspeed-load`.
"""

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from shards.errors import UserError
from shards.storage.disk import disk_errors_explained
from shards.storage.files import atomic_write, make_folder
from trainer.export.source import Tensors
from trainer.export.subject import Subject
from trainer.weights.published import split_part
from trainer.weights.safetensors import bytes_of

_RELEASE = "release"
"""What the reference calls weights without a number of steps."""
_SCRATCH = "scratch"


def write_reference(subject: Subject, folder: Path, *, num_ranks: int) -> list[str]:
    """Write a model for the reference and return what its user should know.

    Args:
        subject: the model.
        folder: an empty folder.
        num_ranks: of model parallelism: how many files there are.

    Raises:
        UserError: the model cannot be split so, or the disk is full.
    """
    shape = subject.shape
    for name in ("hidden_size", "num_heads", "vocab_size"):
        if getattr(shape, name) % num_ranks:
            raise UserError(
                f"--model-parallel {num_ranks} does not divide {name} {getattr(shape, name)}: the "
                "reference splits the heads and the vocabulary evenly."
            )
    tag = _RELEASE if subject.step is None else str(subject.step)
    make_folder(folder / tag)
    for rank in range(num_ranks):
        _write_rank(subject, folder / tag, rank=rank, num_ranks=num_ranks)
    for tracker in ("latest_checkpointed_iteration.txt", "latest"):
        with atomic_write(folder / tracker) as handle:
            handle.write(tag.encode())
    return [_flags(subject)]


def _write_rank(subject: Subject, folder: Path, *, rank: int, num_ranks: int) -> None:
    """Write the file of a rank, by way of a file of its values, which torch reads as it writes.

    torch.save wants all tensors at once; mapped into memory they need none of it.
    """
    tensors = subject.tensors
    scratch = folder / _SCRATCH
    with disk_errors_explained(scratch):
        values = _mapped(tensors, scratch, rank=rank, num_ranks=num_ranks)
        path = folder / f"mp_rank_{rank:02}_model_states.pt"
        try:
            torch.save({"iteration": subject.step or 0, "module": values}, path)
        except RuntimeError as error:  # what torch makes of a full disk
            raise UserError(
                f"{path} could not be written ({error}): make room and run the same command again."
            ) from error
        with path.open("rb") as file:
            os.fsync(file.fileno())
        del values
        scratch.unlink()


def _mapped(tensors: Tensors, scratch: Path, *, rank: int, num_ranks: int) -> dict[str, Tensor]:
    """Return what a rank holds of all tensors, mapped from a file."""
    shapes = {}
    with scratch.open("xb") as file:
        for name in tensors.shapes:
            value = split_part(name, tensors.read(name), rank=rank, num_ranks=num_ranks)
            shapes[name] = value.shape
            file.write(bytes_of(value))
    content = np.memmap(scratch, np.uint8, mode="c")
    values, start = {}, 0
    for name, shape in shapes.items():
        end = start + shape.numel() * tensors.dtype.itemsize
        values[name] = torch.from_numpy(content[start:end]).view(tensors.dtype).view(shape)
        start = end
    return values


def _flags(subject: Subject) -> str:
    """Return the flags with which the reference makes this model."""
    shape = subject.shape
    positions = " --block-lm" if shape.block_positions else ""
    return (
        f"the reference's flags for it: --num-layers {shape.num_layers} --hidden-size "
        f"{shape.hidden_size} --num-attention-heads {shape.num_heads} --max-position-embeddings "
        f"{shape.max_positions}{positions}, and --load-pretrained this folder; its vocabulary must "
        f"have {shape.vocab_size:,} rows"
    )
