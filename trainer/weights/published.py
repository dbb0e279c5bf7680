"""Published GLM checkpoints: found, checked, joined, and copied into a model.

THUDM/GLM (commit 4f61ed7) and DeepSpeed write `mp_rank_00_model_states.pt`, a pickle whose entry
`module` is the state dict, or one such file per rank of model parallelism. Of a matrix that was
split, each rank has a part:

    word_embeddings, dense_h_to_4h     rows, one rank's after the other's
    query_key_value                    rows: a part each of the queries, the keys, the values
    attention.dense, dense_4h_to_h     columns
    everything else                    the same on every rank; the first one's is used

The files also hold the state of NumPy's generator, whose types are allowed besides tensors and
plain values (`torch_file`).
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shards.errors import DamageError, UserError
from trainer.checkpoints import torch_file
from trainer.model.model import GLM

_TRACKERS = ("latest", "latest_checkpointed_iteration.txt")
_PART = re.compile(r"mp_rank_(\d+)_model_states\.pt")
_BY_COLUMN = ("attention.dense.weight", "mlp.dense_4h_to_h.weight")
_BY_ROW = ("word_embeddings.weight", "mlp.dense_h_to_4h.weight", "mlp.dense_h_to_4h.bias")
_FUSED = ("query_key_value.weight", "query_key_value.bias")
_POSITIONS = "position_embeddings.weight"
HEAD = "head."
"""Begins the names of a classifier's head, which is not a part of the model: it stays as it is."""
_LONGEST_TAG = 255
"""Bytes of the name of a folder."""
_ADVICE = "If you trust it, load it elsewhere and save its entry 'module' alone, as {'module': …}."


def read_published(path: Path) -> "Weights":
    """Return the weights in a published checkpoint.

    Args:
        path: a file; a folder of `mp_rank_NN_model_states.pt`; or a folder with `latest` or
            `latest_checkpointed_iteration.txt`, which name such a folder.

    Raises:
        UserError: there is no such checkpoint, or it holds other types.
        DamageError: a file cannot be read, or was changed since it was written.
    """
    files = find_checkpoint_files(path)
    return Weights.of([_read(file) for file in files], files=files)


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The weights of a checkpoint, joined one at a time."""

    parts: Sequence[Mapping[str, Tensor]]
    """By rank of model parallelism."""
    shapes: Sequence[Mapping[str, torch.Size]]
    """Of the parts' values, which are not read for them."""
    files: Sequence[Path]
    """The parts come from, for messages."""

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Tensor]], *, files: Sequence[Path]) -> "Weights":
        """Return the weights in parts that are at hand."""
        shapes = [{name: value.shape for name, value in part.items()} for part in parts]
        return cls(parts=parts, shapes=shapes, files=files)

    def check(self, shapes: Mapping[str, torch.Size], *, extend_positions: bool) -> list[str]:
        """Check that they fit a model, and return the position tables in which it has more rows.

        Args:
            shapes: of the model's parameters.
            extend_positions: let the model have more positions than the files, whose rows come
                first.

        Raises:
            UserError: names or shapes differ from the model's.
            DamageError: the parts do not fit together.
        """
        _check_names(shapes, self.shapes, self.files)
        extended = []
        for name, shape in shapes.items():
            parts = [torch.empty(own[name], device="meta") for own in self.shapes]
            value = join_parts(name, parts, path=self.files[0].parent)
            if _needs_extension(name, value, shape, path=self.files[0], allowed=extend_positions):
                extended.append(name)
        return extended

    def read(self, name: str) -> Tensor:
        """Return a value on the CPU, in the file's type."""
        return join_parts(name, [part[name] for part in self.parts], path=self.files[0].parent)

    @property
    def has_head(self) -> bool:
        """Whether a classifier's head lies beside the model."""
        return any(name.startswith(HEAD) for name in self.shapes[0])

    def copy_into(self, model: GLM, *, extend_positions: bool = False) -> list[str]:
        """Copy all values into a model, in its type, and return what `check` does, as it does."""
        named = weights_of(model)
        shapes = {name: parameter.shape for name, parameter in named.items()}
        extended = self.check(shapes, extend_positions=extend_positions)
        for name, parameter in named.items():
            self.copy_to(name, parameter)
        return extended

    def copy_to(self, name: str, parameter: Tensor) -> None:
        """Copy a value into a parameter that it fits; rows that the parameter has more stay."""
        value = self.read(name)
        with torch.no_grad():
            parameter[: len(value)].copy_(value)


def weights_of(model: GLM) -> dict[str, Tensor]:
    """Return the parameters that a checkpoint gives to a model: all but a classifier's head."""
    return {name: p for name, p in model.named_parameters() if not name.startswith(HEAD)}


def find_checkpoint_files(path: Path) -> list[Path]:
    """Return the files of a checkpoint, by rank of model parallelism.

    Raises:
        UserError: there is none at `path`, or a rank's file is missing.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"there is no checkpoint {path}: no such file or folder.")
    for folder in _folders(path):
        ranks = {
            int(match[1]): file
            for file in folder.iterdir()
            if (match := _PART.fullmatch(file.name))
        }
        if ranks:
            if missing := sorted(set(range(max(ranks) + 1)) - set(ranks)):
                raise UserError(
                    f"{folder} holds {len(ranks)} files of a checkpoint, but none of "
                    f"model-parallel rank {missing[0]}: mp_rank_{missing[0]:02}_model_states.pt is "
                    "missing. Copy all of them."
                )
            return [ranks[rank] for rank in sorted(ranks)]
    raise UserError(
        f"{path} holds no checkpoint: neither mp_rank_00_model_states.pt nor a file "
        f"{' or '.join(_TRACKERS)} that names a folder with it."
    )


def _folders(path: Path) -> Iterator[Path]:
    """Yield where the files may be: the folder itself, or one that a tracker names."""
    yield path
    for tracker in _TRACKERS:
        if (path / tracker).is_file():
            tag = (path / tracker).read_bytes()[:_LONGEST_TAG].decode("utf-8", "replace").strip()
            if Path(tag).name != tag or tag not in {entry.name for entry in path.iterdir()}:
                raise UserError(f"{path / tracker} names {tag!a}, but {path} has no such folder.")
            yield path / tag


def _read(file: Path) -> Mapping[str, Tensor]:
    """Return the weights in a file, memory-mapped if its format allows that.

    Raises:
        UserError: it holds other types than tensors, plain values and NumPy arrays, or no weights.
        DamageError: it is not a PyTorch file, cut short, or was changed since it was written.
    """
    content = torch_file.read(file, _numpy_state_types(), advice=_ADVICE)
    weights = _state_dict(content, file)
    torch_file.check_values(file, weights.values(), advice=_ADVICE)
    return weights


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


def _state_dict(content: Mapping[str, Any], file: Path) -> Mapping[str, Tensor]:
    state = content.get("module")
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise UserError(
            f"{file} is not a GLM checkpoint: it has no entry 'module' with tensors by name; its "
            f"entries are {', '.join(map(str, content)) or 'none'}."
        )
    return state


def _check_names(
    named: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], files: Sequence[Path]
) -> None:
    """Refuse a file that lacks a parameter of the model, or has one that the model lacks."""
    for part, file in zip(parts, files, strict=True):
        own = {name for name in part if not name.startswith(HEAD)}
        for names, what in (
            (named.keys() - own, "lacks parameters that the model has"),
            (own - named.keys(), "has parameters that the model lacks"),
        ):
            if names:
                raise UserError(
                    f"{file} {what}, {len(names)} of them; the first is {min(names)}. It was made "
                    "with another --model: compare layers and block positions."
                )


def join_parts(name: str, parts: Sequence[Tensor], *, path: Path) -> Tensor:
    """Return the whole of a parameter that model parallelism split into parts, by rank.

    Raises:
        DamageError: the parts in `path` do not fit together.
    """
    if len({part.shape for part in parts}) > 1:
        shapes = ", ".join(str(tuple(part.shape)) for part in parts)
        raise DamageError(
            f"the files in {path} do not belong to one checkpoint: {name} has the shapes {shapes}."
        )
    if len(parts) == 1 or not name.endswith((*_BY_COLUMN, *_BY_ROW, *_FUSED)):
        return parts[0]
    if name.endswith(_FUSED):
        thirds = zip(*(part.chunk(3) for part in parts), strict=True)
        return torch.cat([torch.cat(third) for third in thirds])
    return torch.cat(list(parts), dim=1 if name.endswith(_BY_COLUMN) else 0)


def split_part(name: str, whole: Tensor, *, rank: int, num_ranks: int) -> Tensor:
    """Return what a rank of model parallelism holds of a parameter, as `join_parts` joins it.

    Sizes that are split must be multiples of `num_ranks`.
    """
    if num_ranks == 1 or not name.endswith((*_BY_COLUMN, *_BY_ROW, *_FUSED)):
        return whole
    if name.endswith(_FUSED):
        return torch.cat([third.chunk(num_ranks)[rank] for third in whole.chunk(3)])
    return whole.chunk(num_ranks, dim=1 if name.endswith(_BY_COLUMN) else 0)[rank]


def _needs_extension(
    name: str, value: Tensor, shape: torch.Size, *, path: Path, allowed: bool
) -> bool:
    """Return whether a value fills only the first rows of its parameter.

    Raises:
        UserError: it does not fit, or only by an extension that is not allowed.
    """
    if value.shape == shape:
        return False
    has_rows = value.dim() == len(shape) > 0
    shorter = has_rows and value.shape[1:] == shape[1:] and len(value) < shape[0]
    if allowed and shorter and name.endswith(_POSITIONS):
        return True
    raise UserError(
        f"{path}: {name} has the shape {tuple(value.shape)}, but the model expects "
        f"{tuple(shape)}. {_advice(name, value, extendable=shorter)}"
    )


def _advice(name: str, value: Tensor, *, extendable: bool) -> str:
    if not value.dim():
        return "It was made with another --model."
    if name.endswith(_POSITIONS):
        if extendable:
            return f"Give --extend-positions, or use a model with max_positions {len(value) - 1}."
        return f"Use a model with max_positions {len(value) - 1}."
    folder = "If the file is one of several model-parallel ones, give their folder; if not, "
    if name == "word_embeddings.weight":
        return f"{folder}use a model with vocab_size {len(value)}, and the tokenizer of the file."
    return f"{folder}it was made with another --model."
