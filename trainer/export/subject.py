"""What a target is given to write: the tensors, and what is known of their model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch

from shards.storage.files import write_json
from trainer.export.source import Tensors
from trainer.model.sizes import ModelConfig
from trainer.tokenizer import TextTokenizer
from trainer.weights.hugging_face import Training
from trainer.weights.safetensors import INDEX, WHOLE, write_safetensors


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A model that is exported."""

    tensors: Tensors
    shape: ModelConfig
    """Without dropout."""
    objective: str
    """glm or causal."""
    step: int | None
    """Of the run; None: not known."""
    vocabulary: int
    """Ids that mean something; the rows of the embedding after them are padding."""
    special: Mapping[str, int]
    """Ids by role, as far as they are known."""
    tokenizer: TextTokenizer | None
    """None: not known."""
    training: Training
    """What the next one who opens it has to know."""


def write_shards(tensors: Tensors, folder: Path, *, shard_bytes: int | None) -> None:
    """Write tensors as safetensors: one file, or several of at most a size with their index.

    A tensor that is larger has a file of its own.
    """
    sizes = {name: prod(shape) * tensors.dtype.itemsize for name, shape in tensors.shapes.items()}
    shards = [*_packed(sizes, shard_bytes or sum(sizes.values()))]
    if len(shards) == 1:
        write_safetensors(folder / WHOLE, tensors.shapes, tensors.read, dtype=tensors.dtype)
        return
    names = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        shapes = {name: tensors.shapes[name] for name in shard}
        write_safetensors(folder / file, shapes, tensors.read, dtype=tensors.dtype)
        names.update(dict.fromkeys(shard, file))
    total = {"total_size": sum(sizes.values())}
    write_json(folder / INDEX, {"metadata": total, "weight_map": names})


def _packed(sizes: Mapping[str, int], most: int) -> Iterator[Sequence[str]]:
    """Yield names in their order, as many as fit."""
    shard: list[str] = []
    room = most
    for name, size in sizes.items():
        if shard and size > room:
            yield shard
            shard, room = [], most
        shard.append(name)
        room -= size
    yield shard


def name_of_dtype(dtype: torch.dtype) -> str:
    """Return the name that config.json has for a type."""
    return str(dtype).removeprefix("torch.")
