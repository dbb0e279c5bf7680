"""Finds the shape of a run's model, a published model or a named model, without torch.

The shape of a published model is in its config.json, in the format of transformers. The supported
models are GLM (2021), GPT-2, and those that `trainer.export` writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.records import from_json
from trainer.import_weights.foreign import READABLE, refuse_foreign
from trainer.json_file import read_object
from trainer.model.sizes import ModelConfig, padded_vocabulary

CONFIG = "config.json"
FORMS = ("model.safetensors", "pytorch_model.bin")
"""Files with the weights of a whole model; the index of sharded weights adds `INDEX_SUFFIX`."""
INDEX_SUFFIX = ".index.json"
GLM_TYPE = "corpusmill-glm"
"""The model_type of a GLM that `trainer.export` writes; transformers has no such model."""
SHAPE = "shape"
"""The key of the fields of `ModelConfig` in the config.json of a `GLM_TYPE`."""
TRAINING = "corpusmill"
"""The key in config.json for the fields of `TrainingInfo`; transformers keeps and ignores it."""
_LIST = "whole-*.json"
"""The pattern for the names of the lists of a checkpoint's files."""
_COUNTS = ("num_layers", "hidden_size", "num_heads", "max_positions")
"""Fields that a config.json must have, in addition to vocab_size."""


@dataclass(frozen=True, kw_only=True)
class ConfigFormat:
    """The format in which the config.json of a kind of model describes its shape."""

    fields: Mapping[str, str]
    """The names in config.json, by our names."""
    required: Mapping[str, Any]
    """The only supported values of further fields, which may also be omitted."""
    defaults: Mapping[str, Any]
    """The values of omitted fields."""
    implied: Mapping[str, Any] = field(default_factory=dict)
    """Values that all models of this kind have, by our names."""

    def shape_of(self, content: Mapping[str, Any]) -> ModelConfig:
        """Return the shape that a config.json describes, with a padded vocabulary.

        Raises:
            ValueError: a field is missing, or has a value that is not supported.
        """
        given = {**self.required, **self.defaults, **content}
        for name in (*(self.fields[ours] for ours in _COUNTS), "vocab_size"):
            if type(given.get(name)) is not int:
                raise ValueError(f"{name} is {given.get(name)!a}; expected a whole number")
        for name, value in self.required.items():
            if given[name] != value:
                raise ValueError(f"{name} is {given[name]!a}, and only {value!r} is computed here")
        return ModelConfig(
            **{ours: given[theirs] for ours, theirs in self.fields.items()},
            **self.implied,
            vocab_size=padded_vocabulary(given["vocab_size"]),
        )


GLM = ConfigFormat(
    fields={
        "num_layers": "num_layers",
        "hidden_size": "hidden_size",
        "num_heads": "num_attention_heads",
        "max_positions": "max_sequence_length",
        "block_positions": "block_position_encoding",
        "hidden_dropout": "output_dropout_prob",
        "attention_dropout": "attention_dropout_prob",
        "init_std": "initializer_range",
    },
    required={"attention_scale": 1.0, "relative_encoding": False},
    defaults={
        "block_position_encoding": True,
        "initializer_range": 0.02,
        "output_dropout_prob": 0.1,
        "attention_dropout_prob": 0.1,
    },
)
"""GLM as THUDM/GLM publishes it for transformers, which is not transformers' own GLM-4."""
GPT2 = ConfigFormat(
    fields={
        "num_layers": "n_layer",
        "hidden_size": "n_embd",
        "num_heads": "n_head",
        "max_positions": "n_positions",
        "layernorm_eps": "layer_norm_epsilon",
        "init_std": "initializer_range",
    },
    required={
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "tie_word_embeddings": True,
        "add_cross_attention": False,
        "n_inner": None,
    },
    defaults={"layer_norm_epsilon": 1e-5, "initializer_range": 0.02},
    implied={"block_positions": False, "hidden_dropout": 0.0, "attention_dropout": 0.0},
)
"""GPT-2 as OpenAI published it."""


@dataclass(frozen=True, kw_only=True)
class TrainingInfo:
    """Facts about the training of a model, which `trainer.export` writes to config.json."""

    task_mask: bool = True
    """Whether a GLM knows [sMASK] and [gMASK] in addition to [MASK]."""
    tokenizer: Mapping[str, str] = field(default_factory=dict)
    """The `name` and `sha256` of the tokenizer of the data; empty if they are not known."""
    length: int | None = None
    """The length of the windows, in tokens; None if it is not known."""
    isolate_documents: bool = False
    """Whether attention between the documents of a window was masked."""


def described_folder(path: Path) -> Path | None:
    """Return the folder of the config.json that describes weights; None if there is none."""
    folder = path.parent if path.is_file() else path
    return folder if (folder / CONFIG).is_file() else None


def shape_in(folder: Path) -> ModelConfig:
    """Return the shape of the model in a folder, with a padded vocabulary.

    Raises:
        UserError: the model is not supported.
    """
    content = read_object(folder / CONFIG)
    refuse_foreign(folder)
    try:
        if content.get("model_type") == GLM_TYPE:
            return from_json(ModelConfig, content[SHAPE], where=SHAPE)
        if content.get("model_type") == "glm":
            return GLM.shape_of(content)
        if content.get("activation_function") == "gelu_pytorch_tanh":  # the same function
            content["activation_function"] = GPT2.required["activation_function"]
        if content.get("n_inner") == 4 * (content.get("n_embd") or 0):
            content["n_inner"] = None
        return GPT2.shape_of(content)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{folder / CONFIG} does not describe a supported model ({error}). {READABLE}."
        ) from error


def training_in(folder: Path) -> TrainingInfo:
    """Return the facts about the training of the model in a folder, from its config.json.

    Raises:
        UserError: the entry does not have the form that `trainer.export` writes.
    """
    content = read_object(folder / CONFIG).get(TRAINING, {})
    try:
        training = from_json(TrainingInfo, content, where=TRAINING)
        if training.tokenizer and training.tokenizer.keys() != {"name", "sha256"}:
            raise ValueError("a tokenizer has name and sha256")
    except ValueError as error:
        raise UserError(
            f"{folder / CONFIG} does not describe how the model was trained ({error}): restore it, "
            f"or remove its entry {TRAINING}."
        ) from error
    return training


def shape_named(name: str) -> ModelConfig:
    """Return the shape that `--model` names: a name for `ModelConfig.named`, or a config.json.

    Raises:
        UserError: there is no such model.
    """
    path = Path(name)
    is_config = path.name == CONFIG and path.is_file()
    return shape_in(path.parent) if is_config else ModelConfig.named(name)


def shape_at(path: Path) -> ModelConfig | None:
    """Return the shape of a model from the file next to its weights; None if there is no such file.

    Args:
        path: the path of a run, of one of its checkpoints, or of a published model.

    Raises:
        UserError: the model is not supported.
    """
    if (folder := described_folder(path)) is not None:
        return shape_in(folder)
    refuse_foreign(path)
    # All checkpoints of a run record the same shape. A list that cannot be read is reported when
    # the weights are read.
    for list_of_files in (*sorted(path.glob(_LIST)), *sorted(path.glob(f"step-*/{_LIST}"))):
        try:
            model = read_object(list_of_files)["state"]["identity"]["model"]
            return from_json(ModelConfig, model, where="model")
        except (UserError, KeyError, TypeError, ValueError):
            continue
    return None
