"""A dataset in which all tokens but eos are distinct, so that a test knows what was read."""

from dataclasses import replace
from itertools import count
from pathlib import Path

from shards.manifest import Manifest, write_manifest
from tests.shards.datasets import put_dataset

EOS, CLS = 0, 1
SIZE = 16_384
WEB = (
    [40, 1, 1, 2, 90, 33],
    [700],  # one document that is longer than most shards
    [1] * 30,
    [17, 250, 3],
    [5, 5, 5, 120],
    [64, 64],
    [299, 1, 18],
    [8, 90, 2, 7],
)
"""Tokens of each document of each shard, eos included."""
NOTES = ([25, 30],)
HELD = ([100, 31, 2],)


def build(directory: Path, *, sha256: str = "0" * 64, prompts: int = 0) -> Manifest:
    """Write the dataset; documents begin with up to `prompts` tokens of prompt."""
    numbers = count(2)

    manifest = put_dataset(
        directory,
        {
            f"g0001-00/{name}{i:05d}": {
                "documents": [
                    [*(next(numbers) for _ in range(length - 1)), EOS] for length in lengths
                ],
                "prompts": [min(prompts, length - 1) for length in lengths],
            }
            for name, shards in (("notes/", NOTES), ("web/", WEB), ("web/validation-", HELD))
            for i, lengths in enumerate(shards)
        },
        corpus="numbered",
        pieces=[b"<eos>", b"[CLS]", *(b"." if i % 13 == 0 else b"x" for i in range(2, SIZE))],
        special={"eos": EOS, "cls": CLS, "pad": EOS},
        fingerprint="00" + sha256[:6],
    )
    tokenizer = replace(manifest.tokenizer, name=f"numbers-{sha256[:2]}", sha256=sha256)
    manifest = replace(manifest, tokenizer=tokenizer)
    write_manifest(directory, manifest)
    return manifest
