"""A custom filter with a model: logistic regression on hashed 3-grams of characters.

    python own_model.py GOOD.txt BAD.txt model.npz
    python -m pipelines.wudao --filter 'own_model:Liked?model=model.npz&min_score=0.3'

The class is made once in each worker, so a large model is loaded once. Its scores are the column
Liked.score of the audit table, on which `rethreshold` tries other bounds.
"""

import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa

BUCKETS = 1 << 16
PIECE = 3


def features(text: str) -> np.ndarray:
    """Return how often each bucket is hit, as shares of the text (float32[BUCKETS])."""
    pieces = (text[place : place + PIECE] for place in range(len(text) - PIECE + 1))
    buckets = [zlib.crc32(piece.encode()) % BUCKETS for piece in pieces]
    counts = np.bincount(np.array(buckets, np.int64), minlength=BUCKETS)
    return (counts / max(1, len(buckets))).astype(np.float32)


class Liked:
    """Drops texts to which the model gives a low score."""

    metrics = ("score",)
    bounds = {"min_score": 0.5}

    def __init__(self, model: str) -> None:
        self.weights = np.load(model)["weights"]

    def __call__(self, batch: pa.RecordBatch) -> dict[str, np.ndarray]:
        """Return the score of each text."""
        logits = [features(text) @ self.weights for text in batch["text"].to_pylist()]
        return {"score": 1 / (1 + np.exp(-np.array(logits)))}


def train(good: list[str], bad: list[str]) -> np.ndarray:
    """Return weights after a few hundred steps of gradient descent."""
    rows = np.stack([features(text) for text in (*good, *bad)])
    wanted = np.array([1.0] * len(good) + [0.0] * len(bad))
    weights = np.zeros(BUCKETS, np.float32)
    for _ in range(300):
        errors = wanted - 1 / (1 + np.exp(-(rows @ weights)))
        weights += 300 * (errors @ rows) / len(rows)
    return weights


if __name__ == "__main__":
    good, bad = (Path(path).read_text().splitlines() for path in sys.argv[1:3])
    np.savez(sys.argv[3], weights=train(good, bad))
