"""The weights in any checkpoint that the trainer knows."""

from pathlib import Path

from trainer.weights.config_json import is_hugging_face
from trainer.weights.hugging_face import read_hugging_face
from trainer.weights.published import read_published
from trainer.weights.weights import Weights
from trainer.weights.zero import is_partitioned, read_zero


def read_weights(path: Path, *, vocab_size: int) -> Weights:
    """Return the weights in a checkpoint of this trainer, a published one, or transformers' GPT-2.

    Args:
        path: a file or a folder; of a run the folder of a checkpoint (`usable_checkpoint`).
        vocab_size: rows of the model's embedding.

    Raises:
        UserError: there are none.
        DamageError: a file is damaged.
    """
    if is_hugging_face(path):
        return read_hugging_face(path, vocab_size=vocab_size)
    return read_zero(path) if is_partitioned(path) else read_published(path)
