"""The weights of a model wherever they come from, by our names, one parameter at a time."""

from pathlib import Path

from trainer.checkpoints.checkpoint import newest_good_checkpoint
from trainer.checkpoints.zero_weights import ZeroWeights, is_partitioned
from trainer.weights.hugging_face import HuggingFaceWeights, is_hugging_face
from trainer.weights.published import Weights, read_published


def read_weights(path: Path, *, vocab_size: int) -> Weights:
    """Return the weights in a checkpoint of this trainer, a published one, or transformers' GPT-2.

    Args:
        path: a file or a folder; of a run's folder, its newest checkpoint with finite losses.
        vocab_size: rows of the model's embedding.

    Raises:
        UserError: there are none, or in a run only such that were saved with bad losses.
        DamageError: a file is damaged.
    """
    part: HuggingFaceWeights | ZeroWeights
    checkpoint = newest_good_checkpoint(path)
    path = path if checkpoint is None else checkpoint.folder
    if is_hugging_face(path):
        part = HuggingFaceWeights(path, vocab_size=vocab_size)
    elif is_partitioned(path):
        part = ZeroWeights(path)
    else:
        return read_published(path)
    return Weights(parts=[part], shapes=[part.shapes], files=[path])
