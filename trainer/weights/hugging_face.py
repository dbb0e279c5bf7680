"""Weights in folders as transformers has them, by our names and in our layout.

GPT-2 gives all its tokens logits far below 0. The rows that its embedding lacks get the mean of the
others: rows near 0, whose logit is 0, would take nearly all of the probability.
"""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
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
