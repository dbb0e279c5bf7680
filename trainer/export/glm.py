"""A model as safetensors, with its shape, its masks and its tokenizer's sha256 in config.json.

Names and layout are ours, which are those of THUDM/GLM. `--init-from FOLDER` reads it back.
"""

from pathlib import Path

from shards.records import to_json
from shards.storage.files import write_json
from trainer.export.subject import Subject, name_of_dtype, write_shards
from trainer.export.tokenizer_files import copy_tokenizer
from trainer.weights.hugging_face import CONFIG, GLM_TYPE, SHAPE, TRAINING


def write_glm(subject: Subject, folder: Path, *, shard_bytes: int | None) -> list[str]:
    """Write a model and return what its user should know."""
    write_shards(subject.tensors, folder, shard_bytes=shard_bytes)
    content = {
        "model_type": GLM_TYPE,
        SHAPE: to_json(subject.shape),
        "objective": subject.objective,
        TRAINING: to_json(subject.training),
        "step": subject.step,
        "vocabulary": subject.vocabulary,
        "special_tokens": dict(subject.special),
        "torch_dtype": name_of_dtype(subject.tensors.dtype),
    }
    write_json(folder / CONFIG, content)
    return copy_tokenizer(subject, folder)
