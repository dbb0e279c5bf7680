"""Trains and writes small models for tests of scorers and languages."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

LINES = [
    "__label__en the cat sat on the mat and looked at the moon",
    "__label__de die Katze saß auf der Matte und sah den Mond an",
    "__label__fr le chat était assis sur le tapis et regardait la lune",
    "__label__zh 猫 坐 在 垫子 上 看着 月亮",
    "__label__en where did the cat go last night",
]
"""The lines on which fastText trains."""
TEXTS = [line.partition(" ")[2] for line in LINES]


def write_classifier(
    path: Path, *, quantize: Mapping[str, Any] | None = None, **options: Any
) -> Path:
    """Train a model of labels, quantize it if options for this are given, and write it."""
    library = pytest.importorskip("fasttext_new", reason="it trains")
    lines = path.with_suffix(".txt")
    lines.write_text("\n".join(LINES * 60) + "\n", encoding="utf-8")
    settings = {"dim": 8, "bucket": 2000, "loss": "hs", "epoch": 20, "thread": 1, "verbose": 0}
    model = library.train_supervised(str(lines), **{**settings, **options})
    if quantize is not None:
        model.quantize(str(lines), verbose=0, **quantize)
    model.save_model(str(path))
    return path
