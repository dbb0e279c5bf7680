"""A tokenizer of GPT-2's kind: all bytes, and a few merges."""

import json
from pathlib import Path

from pipelines.tokenizers.bpe import byte_alphabet

MERGES = [("t", "h"), ("th", "e"), ("\u0120", "the"), ("o", "n"), ("\u0120", "on")]


def put_tokenizer(folder: Path) -> str:
    """Write GPT-2's two files and return what `--tokenizer` takes."""
    pieces = [*byte_alphabet(), *("".join(pair) for pair in MERGES), "<|endoftext|>"]
    lines = ["#version: 0.2", *(" ".join(pair) for pair in MERGES), ""]
    (folder / "merges.txt").write_text("\n".join(lines))
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    return f"tiktoken:{folder / 'merges.txt'}"
