"""Small models for tests of scorers, trained and written here."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import fasttext_new

GOOD = ("the proof of this theorem follows from the lemma", "we measure energy and heat in water")
BAD = ("click here to buy cheap pills now", "win free cash now click and win")

LINES = [
    "__label__en the cat sat on the mat and looked at the moon",
    "__label__de die Katze saß auf der Matte und sah den Mond an",
    "__label__fr le chat était assis sur le tapis et regardait la lune",
    "__label__zh 猫 坐 在 垫子 上 看着 月亮",
    "__label__en where did the cat go last night",
]
"""Lines that fastText trains on."""


def write_classifier(
    path: Path, labelled: Mapping[str, Sequence[str]], *, loss: str = "softmax"
) -> Path:
    """Train a classifier of texts by label and write it."""
    lines = [
        f"__label__{label} {text}\n" for label, texts in labelled.items() for text in texts * 50
    ]
    corpus = path.with_suffix(".txt")
    corpus.write_text("".join(lines))
    model = fasttext_new.train_supervised(
        input=str(corpus), thread=1, seed=1, dim=8, epoch=5, lr=0.5, wordNgrams=2, bucket=1000,
        minCount=1, loss=loss, verbose=0,
    )  # fmt: skip
    model.save_model(str(path))
    return path
