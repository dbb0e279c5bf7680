"""Writes models in the file formats in which other programs save them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

Weights = Mapping[str, Tensor]


def one_safetensors(folder: Path, weights: Weights) -> None:
    save_file(dict(weights), folder / "model.safetensors")


def one_bin(folder: Path, weights: Weights) -> None:
    torch.save(dict(weights), folder / "pytorch_model.bin")


def legacy_bin(folder: Path, weights: Weights) -> None:
    """Write the weights as torch before 1.6 saved them."""
    path = folder / "pytorch_model.bin"
    torch.save(dict(weights), path, _use_new_zipfile_serialization=False)


def sharded(ending: str, save: Callable[[dict[str, Tensor], Path], Any]) -> Any:
    """Return a function that writes the weights as two shards with an index."""

    def write(folder: Path, weights: Weights) -> None:
        stem = "model" if ending == "safetensors" else "pytorch_model"
        files = {name: f"{stem}-{i % 2 + 1:05}-of-00002.{ending}" for i, name in enumerate(weights)}
        for file in {*files.values()}:
            save({name: weights[name] for name in weights if files[name] == file}, folder / file)
        index = {"metadata": {}, "weight_map": files}
        (folder / f"{stem}.{ending}.index.json").write_text(json.dumps(index))

    return write


FORMS: Mapping[str, Callable[[Path, Weights], None]] = {
    "safetensors": one_safetensors,
    "safetensors in shards": sharded("safetensors", save_file),
    "bin": one_bin,
    "bin in shards": sharded("bin", torch.save),
    "bin of old torch": legacy_bin,
}


@dataclass(frozen=True)
class Saved:
    """The format and the prefix of names in which a model is saved."""

    form: str
    prefix: str

    def write(self, folder: Path, weights: Weights, config: Mapping[str, Any]) -> Path:
        folder.mkdir(exist_ok=True)
        FORMS[self.form](folder, {f"{self.prefix}{name}": w for name, w in weights.items()})
        (folder / "config.json").write_text(json.dumps(config))
        return folder
