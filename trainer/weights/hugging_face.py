"""Folders as transformers has them: `config.json` beside safetensors.

Of others' models GPT-2 alone can be read; a GLM that `trainer.export` wrote is read as well. What
is read has our names and our layout, one tensor at a time.

GPT-2's 50,257 rows of embeddings are fewer than ours, which come in multiples of 128. The rows that
are missing get the mean of the others: GPT-2 gives all its tokens logits far below 0, so that rows
near 0, whose logit is 0, would take nearly all of the probability.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shards.errors import DamageError, UserError
from shards.records import from_json
from shards.run import CAUSAL, GLM
from trainer.json_file import read_object
from trainer.model.model import parameter_shapes
from trainer.model.sizes import ModelConfig, padded_vocabulary
from trainer.weights.gpt2_names import PREFIX, WORDS, is_transposed, name_in_transformers
from trainer.weights.safetensors import INDEX, WHOLE, SafeTensors

CONFIG = "config.json"
GLM_TYPE = "corpusmill-glm"
"""model_type of a GLM that `trainer.export` writes; transformers has no such model."""
SHAPE = "shape"
"""Where its config.json has the fields of `ModelConfig`."""
TRAINING = "corpusmill"
"""Where config.json has the fields of `Training`; transformers keeps and ignores it."""
_GPT2_DEFAULTS = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "tie_word_embeddings": True,
    "add_cross_attention": False,
}
"""What a GPT-2 must say, or leave out, to be the one that is computed here."""
_SAME_ACTIVATION = "gelu_pytorch_tanh"
"""Another name for gelu_new."""


def is_hugging_face(path: Path) -> bool:
    """Return whether a folder has the files of such a model."""
    return (path / CONFIG).is_file() and any((path / name).is_file() for name in (WHOLE, INDEX))


def shape_in(folder: Path) -> ModelConfig:
    """Return the shape of the model in a folder, its vocabulary padded, without dropout.

    Raises:
        UserError: it is neither a GPT-2 as OpenAI's nor a GLM that was exported from here.
    """
    path = folder / CONFIG
    content = read_object(path)
    try:
        if content.get("model_type") == GLM_TYPE:
            return from_json(ModelConfig, content[SHAPE], where=SHAPE)
        _check_gpt2(content, path)
        return ModelConfig(
            num_layers=content["n_layer"],
            hidden_size=content["n_embd"],
            num_heads=content["n_head"],
            vocab_size=padded_vocabulary(content["vocab_size"]),
            max_positions=content["n_positions"],
            block_positions=False,
            hidden_dropout=0.0,
            attention_dropout=0.0,
            layernorm_eps=content.get("layer_norm_epsilon", 1e-5),
            init_std=content.get("initializer_range", 0.02),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} does not describe a model ({error}): bring it back as it was."
        ) from error


@dataclass(frozen=True, kw_only=True)
class Training:
    """What `trainer.export` tells of how a model was trained, in its config.json."""

    task_mask: bool = True
    """Whether a GLM knows [sMASK] and [gMASK] beside [MASK]."""
    tokenizer: Mapping[str, str] = field(default_factory=dict)
    """name and sha256 of the data's; empty: not known."""


def training_in(folder: Path) -> Training:
    """Return how the model in a folder was trained, as far as its config.json says.

    Raises:
        UserError: what it says cannot be understood.
    """
    told = read_object(folder / CONFIG).get(TRAINING, {})
    try:
        training = from_json(Training, told, where=TRAINING)
        if training.tokenizer and training.tokenizer.keys() != {"name", "sha256"}:
            raise ValueError("a tokenizer has name and sha256")
    except ValueError as error:
        raise UserError(
            f"{folder / CONFIG} does not say how the model was trained ({error}): bring it back as "
            f"it was, or remove its entry {TRAINING}."
        ) from error
    return training


def objective_in(folder: Path) -> str | None:
    """Return what the model in a folder was trained for, if its config.json says so."""
    objective = read_object(folder / CONFIG).get("objective")
    return objective if objective in (CAUSAL, GLM) else None


def _check_gpt2(content: Mapping[str, Any], path: Path) -> None:
    """Refuse what is computed in another way than GPT-2."""
    width = 4 * content["n_embd"]
    expected = {**_GPT2_DEFAULTS, "n_inner": width}
    given = {**expected, "model_type": None, **content}
    if given["n_inner"] is None:
        given["n_inner"] = width
    if given["activation_function"] == _SAME_ACTIVATION:
        given["activation_function"] = _GPT2_DEFAULTS["activation_function"]
    for name, value in expected.items():
        if given[name] != value:
            raise UserError(
                f"{path} says {name} {given[name]!a}; what can be read here is a GPT-2 with "
                f"{name} {value!r}, or a GLM that trainer.export wrote."
            )


class HuggingFaceWeights(Mapping[str, Tensor]):
    """The weights of a model in such a folder, by our names."""

    def __init__(self, folder: Path, *, vocab_size: int) -> None:
        """Open a folder.

        Args:
            folder: as `is_hugging_face` finds it.
            vocab_size: rows of the embedding that are wanted; those that are missing are filled up.

        Raises:
            UserError: as `shape_in`, or the model lacks a parameter.
            DamageError: a file is damaged.
        """
        self._path = folder
        self._rows = vocab_size
        self._stored = SafeTensors(folder)
        shape = shape_in(folder)
        if read_object(folder / CONFIG)["model_type"] == GLM_TYPE:
            self._names = {name: name for name in self._stored}
            self._transposes = False
            return
        self._transposes = True
        self._names = {name: self._find(name) for name in parameter_shapes(shape)}

    def _find(self, name: str) -> str:
        theirs = name_in_transformers(name)
        found = next((n for n in (PREFIX + theirs, theirs) if n in self._stored), None)
        if found is None:
            raise DamageError(
                f"{self._path} has no {PREFIX}{theirs}, which a GPT-2 has: copy its files again."
            )
        return found

    @property
    def shapes(self) -> Mapping[str, torch.Size]:
        """Of the parameters."""
        stored = self._stored.shapes
        return {name: self._shape_of(name, stored[theirs]) for name, theirs in self._names.items()}

    def _shape_of(self, name: str, stored: torch.Size) -> torch.Size:
        if self._transposes and is_transposed(name):
            return torch.Size(reversed(stored))
        if name == WORDS and stored and 0 < self._rows - stored[0] < padded_vocabulary(1):
            return torch.Size([self._rows, *stored[1:]])
        return stored

    def __getitem__(self, name: str) -> Tensor:
        """Return a parameter on the CPU, in the file's type."""
        value = self._stored[self._names[name]]
        shape = self._shape_of(name, value.shape)
        if self._transposes and is_transposed(name):
            value = value.t()
        if shape == value.shape:
            return value
        mean = value.float().mean(dim=0).to(value.dtype)
        return torch.cat([value, mean.expand(shape[0] - len(value), -1)])

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names)
