"""Weights in folders as transformers has them, by our names and in our layout.

GPT-2 gives all its tokens logits far below 0. The rows that its embedding lacks get the mean of the
others: rows near 0, whose logit is 0, would take nearly all of the probability.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from shards.errors import DamageError, UserError
from trainer.checkpoints.torch_file import one_line
from trainer.json_file import read_object
from trainer.model.model import parameter_shapes
from trainer.model.sizes import padded_vocabulary
from trainer.weights import gpt2
from trainer.weights.config_json import CONFIG, GLM_TYPE, INDEX, WHOLE, shape_in
from trainer.weights.weights import Weights


def read_hugging_face(folder: Path, *, vocab_size: int) -> Weights:
    """Return the weights of a model in such a folder.

    Args:
        folder: as `is_hugging_face` finds it.
        vocab_size: rows of the embedding that are wanted; those that are missing are filled up.

    Raises:
        UserError: as `shape_in`, or a type of the files is none of floating point.
        DamageError: a file is damaged, or a parameter missing.
    """
    shape = shape_in(folder)
    stored = {name: stored for file in _files(folder) for name, stored in _open(file).items()}
    if read_object(folder / CONFIG).get("model_type") == GLM_TYPE:
        return Weights(parts={name: [value] for name, value in stored.items()}, source=folder)
    parts = {}
    for name in parameter_shapes(shape):
        theirs = gpt2.name_in_transformers(name)
        found = next((n for n in (gpt2.PREFIX + theirs, theirs) if n in stored), None)
        if found is None:
            raise DamageError(
                f"{folder} has no {gpt2.PREFIX}{theirs}, which a GPT-2 has: copy its files again."
            )
        parts[name] = [_OfGpt2(stored[found], name, vocab_size)]
    return Weights(parts=parts, source=folder)


class _Stored:
    """A tensor in a file, read when it is asked for."""

    def __init__(self, path: Path, opened: Any, name: str) -> None:
        self._path, self._opened, self._name = path, opened, name
        self.shape = torch.Size(opened.get_slice(name).get_shape())

    def contiguous(self) -> Tensor:
        value: Tensor = self._opened.get_tensor(self._name)
        if not value.is_floating_point():
            raise UserError(
                f"{self._path} has values of type {value.dtype}: save the weights without "
                "quantization."
            )
        return value


class _OfGpt2:
    """A parameter of ours that a tensor of transformers' GPT-2 holds."""

    def __init__(self, stored: _Stored, name: str, vocab_size: int) -> None:
        self._stored = stored
        self._is_transposed = gpt2.is_transposed(name)
        rows = stored.shape[0] if stored.shape else 0
        is_filled = name == gpt2.WORDS and 0 < vocab_size - rows < padded_vocabulary(1)
        self._rows = vocab_size if is_filled else rows
        lengths = [self._rows, *stored.shape[1:]] if stored.shape else []
        self.shape = torch.Size(lengths[::-1] if self._is_transposed else lengths)

    def contiguous(self) -> Tensor:
        value = self._stored.contiguous()
        if self._is_transposed:
            return value.t()
        if self._rows == len(value):
            return value
        mean = value.float().mean(dim=0).to(value.dtype)
        return torch.cat([value, mean.expand(self._rows - len(value), -1)])


def _files(folder: Path) -> list[Path]:
    if (folder / WHOLE).is_file():
        return [folder / WHOLE]
    named = read_object(folder / INDEX).get("weight_map")
    names = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
    if not names or any(Path(name).name != name for name in names):
        raise DamageError(f"{folder / INDEX} does not name files beside it: copy it again.")
    return [folder / name for name in names]


def _open(path: Path) -> dict[str, _Stored]:
    try:
        opened = safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise DamageError(
            f"{path} is no file of safetensors, or was damaged ({one_line(error)}): copy it again."
        ) from error
    names: list[str] = opened.keys()  # type: ignore[no-untyped-call]
    return {name: _Stored(path, opened, name) for name in names}
