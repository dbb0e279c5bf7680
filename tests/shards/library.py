"""Writes a dataset of two generations whose documents have ids, URLs and places in the input.

Document n of a shard named `news-0` has the id news-0-n, and comes from byte 100 n of news-0.json.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shards.manifest import Manifest
from tests.shards.datasets import put_dataset

EOS, CLS, PAD = 256, 257, 258
FIRST, SECOND = "g0001-00aa", "g0002-00bb"
_PIECES = [bytes([i]) for i in range(256)] + [b"<eos>", b"[CLS]", b"[PAD]"]


def text_of(name: str, row: int) -> str:
    """Return the text of a document, which differs from all other documents' texts."""
    length = int(np.random.default_rng([*name.encode(), row]).integers(1, 60))
    return f"{name} text {row} " + "lorem ipsum. " * length


def of_texts(name: str, rows: int, first_order: int = 0) -> dict[str, Any]:
    """Return the arguments for a shard of documents, with one token per byte."""
    numbers = range(rows)
    return {
        "documents": [[*text_of(name, row).encode(), EOS] for row in numbers],
        "order": [first_order + row for row in numbers],
        "path": pa.array([f"{name}.json"] * rows, pa.string()).dictionary_encode(),
        "position": pa.array([row * 100 for row in numbers], pa.int64()),
        "ordinal": pa.array([0] * rows, pa.int32()),
        "id": pa.array([f"{name}-{row}" for row in numbers], pa.string()),
        "url": pa.array(
            ["" if row % 3 == 2 else f"https://{name}.org/a/{row}?q=1" for row in numbers],
            pa.string(),
        ),
    }


def build(directory: Path, *, dtype: str = "<u2", prompts: bool = False) -> Manifest:
    """Write the dataset: news in both generations, books only in the first; one shard is empty.

    Args:
        directory: The folder of the dataset.
        dtype: The type of the tokens.
        prompts: Whether the document of row n begins with n tokens of prompt.
    """
    sources = {
        f"{FIRST}/books": ("books", 2, 0),
        f"{FIRST}/news": ("news", 4, 3),
        f"{SECOND}/news": ("later", 2, 2),
    }
    shards = {}
    for folder, (name, count, held) in sources.items():
        for i in range(count):
            rows = 0 if (name, i) == ("later", 1) else 12
            shards[f"{folder}/{i:05d}"] = of_texts(f"{name}-{i}", rows, (i << 64) // count + 5)
        if held:
            shards[f"{folder}/validation-00000"] = of_texts(f"{name}-v", held)
    for shard in shards.values():
        shard["dtype"] = dtype
        shard["prompts"] = range(len(shard["documents"])) if prompts else None
    special = {"eos": EOS, "cls": CLS, "pad": PAD}
    return put_dataset(directory, shards, corpus="library", pieces=_PIECES, special=special)
