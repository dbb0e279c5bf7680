"""The weights in any checkpoint that the trainer knows, by our names and in our layout.

Published GLMs are as THUDM/GLM (commit 4f61ed7) and DeepSpeed write them:
`mp_rank_00_model_states.pt` is a pickle whose entry `module` is the state dict; there may be one
such file per rank of model parallelism. The files also hold the state of NumPy's generator, whose
types are allowed besides tensors and plain values (`torch_file`).

GPT-2 gives all its tokens logits far below 0. The rows that its embedding lacks get the mean of the
others: rows near 0, whose logit is 0, would take nearly all of the probability.
"""

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from shards.errors import DamageError, UserError
from trainer.checkpoints import torch_file
from trainer.checkpoints.torch_file import (
    deepspeed_types,
    explain_damage,
    one_line,
    read,
    weights_only,
)
from trainer.json_file import read_object
from trainer.model.model import parameter_shapes
from trainer.model.sizes import padded_vocabulary
from trainer.weights import gpt2
from trainer.weights.config_json import CONFIG, GLM_TYPE, INDEX, WHOLE, is_hugging_face, shape_in
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


_TRACKERS = ("latest", "latest_checkpointed_iteration.txt")
_FILE = "mp_rank_{}_model_states.pt"
_LONGEST_TAG = 255
"""Characters of the name of a folder."""


def read_published(path: Path) -> Weights:
    """Return the weights in a published checkpoint.

    Args:
        path: a file; a folder of `mp_rank_NN_model_states.pt`; or a folder with `latest` or
            `latest_checkpointed_iteration.txt`, which name such a folder.

    Raises:
        UserError: there is no such checkpoint, or it holds other types.
        DamageError: a file cannot be read, or the files do not belong to one checkpoint.
    """
    files = _find_files(path)
    parts = [_read(file) for file in files]
    source = files[0] if len(files) == 1 else files[0].parent
    names = {name for part in parts for name in part}
    if lacking := [name for name in names if any(name not in part for part in parts)]:
        raise UserError(
            f"the files in {source} do not belong to one checkpoint: {min(lacking)} is not in all."
        )
    # In the order of the file.
    return Weights(parts={name: [p[name] for p in parts] for name in parts[0]}, source=source)


def _find_files(path: Path) -> list[Path]:
    """Return the files of a checkpoint, by rank of model parallelism."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"there is no checkpoint {path}: no such file or folder.")
    for folder in _folders(path):
        there = {file.name for file in folder.glob(_FILE.format("*"))}
        names = [_FILE.format(f"{rank:02}") for rank in range(len(there))]
        if lacking := [name for name in names if name not in there]:
            raise UserError(
                f"{folder} holds {len(there)} files of a checkpoint, but no {lacking[0]}: copy all "
                "of them."
            )
        if names:
            return [folder / name for name in names]
    raise UserError(
        f"{path} holds no checkpoint: neither {_FILE.format('00')} nor a file "
        f"{' or '.join(_TRACKERS)} that names a folder with it."
    )


def _folders(path: Path) -> Iterator[Path]:
    """Yield where the files may be: the folder itself, or one that a tracker names."""
    yield path
    for tracker in _TRACKERS:
        if (path / tracker).is_file():
            tag = (path / tracker).read_text("utf-8", "replace").strip()[:_LONGEST_TAG]
            if tag not in {entry.name for entry in path.iterdir()}:
                raise UserError(f"{path / tracker} names {tag!a}, but {path} has no such folder.")
            yield path / tag


def _read(file: Path) -> Mapping[str, Tensor]:
    """Return the weights in a file, memory-mapped."""
    content = torch_file.read(file, _numpy_state_types())
    state = content.get("module")
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise UserError(
            f"{file} is not a GLM checkpoint: it has no entry 'module' with tensors by name; its "
            f"entries are {', '.join(map(str, content)) or 'none'}."
        )
    return state


def _numpy_state_types() -> list[Any]:
    """Return the types in a pickled array of uint32, under NumPy's old and new names."""
    with warnings.catch_warnings():
        # Its module is private, but pickles name it.
        warnings.simplefilter("ignore", DeprecationWarning)
        rebuild = np.zeros(1, np.uint32).__reduce__()[0]
    return [
        rebuild,
        (rebuild, "numpy.core.multiarray._reconstruct"),
        (rebuild, "numpy._core.multiarray._reconstruct"),
        np.ndarray,
        np.dtype,
        type(np.dtype(np.uint32)),
    ]


def read_hugging_face(folder: Path, *, vocab_size: int) -> Weights:
    """Return the weights of a model in such a folder; its files are memory-mapped.

    Args:
        folder: as `is_hugging_face` finds it.
        vocab_size: rows of the embedding that are wanted; those that are missing are filled up.

    Raises:
        UserError: as `shape_in`, or a type of the files is none of floating point.
        DamageError: a file is damaged, or a parameter missing.
    """
    shape = shape_in(folder)
    stored = {name: value for file in _files(folder) for name, value in _load(file).items()}
    if read_object(folder / CONFIG).get("model_type") == GLM_TYPE:
        return Weights(parts={name: [value] for name, value in stored.items()}, source=folder)
    stored = {name.removeprefix(gpt2.PREFIX): value for name, value in stored.items()}
    parts = {}
    for name in parameter_shapes(shape):
        value = stored.get(gpt2.name_in_transformers(name))
        if value is None:
            raise DamageError(
                f"{folder} has no {gpt2.PREFIX}{gpt2.name_in_transformers(name)}, which a GPT-2 "
                "has: copy its files again."
            )
        if gpt2.is_transposed(name) and value.dim() == 2:  # noqa: PLR2004
            value = value.t()
        parts[name] = [_filled(value, vocab_size) if name == gpt2.WORDS else value]
    return Weights(parts=parts, source=folder)


def _filled(words: Tensor, vocab_size: int) -> Tensor:
    """Return an embedding with the rows of padding that it lacks; of another size, as it is."""
    missing = vocab_size - len(words) if words.dim() else 0
    if not 0 < missing < padded_vocabulary(1):
        return words
    mean = words.float().mean(dim=0).to(words.dtype)
    return torch.cat([words, mean.expand(missing, -1)])


def _files(folder: Path) -> list[Path]:
    if (folder / WHOLE).is_file():
        return [folder / WHOLE]
    named = read_object(folder / INDEX).get("weight_map")
    names = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
    if not names or any(Path(name).name != name for name in names):
        raise DamageError(f"{folder / INDEX} does not name files beside it: copy it again.")
    return [folder / name for name in names]


def _load(path: Path) -> dict[str, Tensor]:
    try:
        values = load_file(path)
    except (SafetensorError, OSError) as error:
        raise DamageError(
            f"{path} is no file of safetensors, or was damaged ({one_line(error)}): copy it again."
        ) from error
    for value in values.values():
        if not value.is_floating_point():
            raise UserError(
                f"{path} has values of type {value.dtype}: save the weights without quantization."
            )
    return values
