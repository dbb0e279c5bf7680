"""config.json of folders as transformers has them: which model it describes.

Of others' models GLM (2021) and GPT-2 can be read; a GLM that `trainer.export` wrote is read too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shards.errors import UserError
from shards.records import from_json
from shards.run import CAUSAL, GLM
from trainer.import_weights import glm, gpt2
from trainer.import_weights.foreign import READABLE, refuse_foreign
from trainer.json_file import read_object
from trainer.model.sizes import ModelConfig

CONFIG = "config.json"
FORMS = ("model.safetensors", "pytorch_model.bin")
"""Files that hold the weights of a whole model; of its shards `INDEX_SUFFIX` ends the index."""
INDEX_SUFFIX = ".index.json"
GLM_TYPE = "corpusmill-glm"
"""model_type of a GLM that `trainer.export` writes; transformers has no such model."""
SHAPE = "shape"
"""Where its config.json has the fields of `ModelConfig`."""
TRAINING = "corpusmill"
"""Where config.json has the fields of `Training`; transformers keeps and ignores it."""


def described_folder(path: Path) -> Path | None:
    """Return the folder whose config.json describes a folder or file of weights; None without."""
    folder = path.parent if path.is_file() else path
    return folder if (folder / CONFIG).is_file() else None


def shape_in(folder: Path) -> ModelConfig:
    """Return the shape of the model in a folder, its vocabulary padded.

    Raises:
        UserError: it is none that can be read here.
    """
    content = read_object(folder / CONFIG)
    refuse_foreign(folder)
    try:
        if content.get("model_type") == GLM_TYPE:
            return from_json(ModelConfig, content[SHAPE], where=SHAPE)
        if content.get("model_type") == glm.MODEL_TYPE:
            return glm.shape_of(content)
        return gpt2.shape_of(content)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{folder / CONFIG} does not describe a model that can be read here ({error}). "
            f"{READABLE}."
        ) from error


@dataclass(frozen=True, kw_only=True)
class Training:
    """What `trainer.export` tells of how a model was trained, in its config.json."""

    task_mask: bool = True
    """Whether a GLM knows [sMASK] and [gMASK] beside [MASK]."""
    tokenizer: Mapping[str, str] = field(default_factory=dict)
    """name and sha256 of the data's; empty: not known."""
    length: int | None = None
    """Of its windows; None: not known."""
    isolate_documents: bool = False
    """Whether the documents of a window did not see each other."""


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


def vocabulary_in(folder: Path) -> int | None:
    """Return how many tokens the model in a folder has, if its embedding has rows for no others."""
    size = read_object(folder / CONFIG).get("vocab_size")
    return size if isinstance(size, int) else None


def objective_in(folder: Path) -> str | None:
    """Return what the model in a folder was trained for, if its config.json says so."""
    objective = read_object(folder / CONFIG).get("objective")
    return objective if objective in (CAUSAL, GLM) else None
