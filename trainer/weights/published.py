"""Published GLM checkpoints, as THUDM/GLM (commit 4f61ed7) and DeepSpeed write them.

`mp_rank_00_model_states.pt` is a pickle whose entry `module` is the state dict; there may be one
such file per rank of model parallelism. The files also hold the state of NumPy's generator, whose
types are allowed besides tensors and plain values (`torch_file`).
"""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from shards.errors import UserError
from trainer.checkpoints import torch_file
from trainer.weights.weights import Weights

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
