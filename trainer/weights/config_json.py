"""config.json of folders as transformers has them: what it tells of a model.

Of others' models GPT-2 alone can be read; a GLM that `trainer.export` wrote is read as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shards.errors import UserError
from shards.records import from_json
from shards.run import CAUSAL, GLM
from trainer.json_file import read_object
from trainer.model.sizes import ModelConfig
from trainer.weights import gpt2

CONFIG = "config.json"
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
GLM_TYPE = "corpusmill-glm"
"""model_type of a GLM that `trainer.export` writes; transformers has no such model."""
SHAPE = "shape"
"""Where its config.json has the fields of `ModelConfig`."""
TRAINING = "corpusmill"
"""Where config.json has the fields of `Training`; transformers keeps and ignores it."""


def is_hugging_face(path: Path) -> bool:
    """Return whether a folder has the files of such a model."""
    return (path / CONFIG).is_file() and any((path / name).is_file() for name in (WHOLE, INDEX))


def shape_in(folder: Path) -> ModelConfig:
    """Return the shape of the model in a folder, its vocabulary padded, without dropout.

    Raises:
        UserError: it is neither a GPT-2 as OpenAI's nor a GLM that was exported from here.
    """
    content = read_object(folder / CONFIG)
    try:
        if content.get("model_type") == GLM_TYPE:
            return from_json(ModelConfig, content[SHAPE], where=SHAPE)
        return gpt2.shape_of(content)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{folder / CONFIG} does not describe a model that can be read here ({error}): neither "
            "a GPT-2 nor a GLM that trainer.export wrote."
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
