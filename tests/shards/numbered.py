"""A dataset in which all tokens but eos are distinct, so that a test knows what was read."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from shards.manifest import Manifest, ShardEntry, SourceEntry, write_manifest
from tests.shards.datasets import manifest_of, put_shard

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

    def put(path: str, lengths: Sequence[int]) -> ShardEntry:
        return put_shard(
            directory,
            f"g0001-00/{path}",
            [[*(next(numbers) for _ in range(length - 1)), EOS] for length in lengths],
            prompts=[min(prompts, length - 1) for length in lengths],
        )

    notes = [put(f"notes/{i:05d}", lengths) for i, lengths in enumerate(NOTES)]
    web = [put(f"web/{i:05d}", lengths) for i, lengths in enumerate(WEB)]
    held = [put(f"web/validation-{i:05d}", lengths) for i, lengths in enumerate(HELD)]
    manifest = manifest_of(
        directory,
        {
            "notes": SourceEntry(shards=tuple(notes), validation=()),
            "web": SourceEntry(shards=tuple(web), validation=tuple(held)),
        },
        corpus="numbered",
        pieces=[b"<eos>", b"[CLS]", *(b"." if i % 13 == 0 else b"x" for i in range(2, SIZE))],
        special={"eos": EOS, "cls": CLS, "pad": EOS},
        name="g0001-00",
        fingerprint="00" + sha256[:6],
    )
    tokenizer = replace(manifest.tokenizer, name=f"numbers-{sha256[:2]}", sha256=sha256)
    manifest = replace(manifest, tokenizer=tokenizer)
    write_manifest(directory, manifest)
    return manifest
