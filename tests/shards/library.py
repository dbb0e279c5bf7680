"""A dataset of two generations whose documents have ids, URLs and places in the input.

Document n of a shard named `news-0` has the id news-0-n, and comes from byte 100 n of news-0.json.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from shards.manifest import Generation, Manifest, ShardEntry, SourceEntry, write_manifest
from tests.shards.datasets import manifest_of, put_shard

EOS, CLS, PAD = 256, 257, 258
FIRST, SECOND = "g0001-00aa", "g0002-00bb"
_PIECES = [bytes([i]) for i in range(256)] + [b"<eos>", b"[CLS]", b"[PAD]"]


def text_of(name: str, row: int) -> str:
    """Return the text of a document, which no other has."""
    length = int(np.random.default_rng([*name.encode(), row]).integers(1, 60))
    return f"{name} text {row} " + "lorem ipsum. " * length


def put_texts(
    directory: Path, path: str, *, name: str, rows: int, first_order: int = 0
) -> ShardEntry:
    """Write a shard of documents, one token a byte."""
    numbers = range(rows)
    return put_shard(
        directory,
        path,
        [[*text_of(name, row).encode(), EOS] for row in numbers],
        order=[first_order + row for row in numbers],
        path=pa.array([f"{name}.json"] * rows).dictionary_encode(),
        position=pa.array([row * 100 for row in numbers], pa.int64()),
        ordinal=pa.array([0] * rows, pa.int32()),
        id=pa.array([f"{name}-{row}" for row in numbers]),
        url=pa.array(
            ["" if row % 3 == 2 else f"https://{name}.org/a/{row}?q=1" for row in numbers]
        ),
    )


def put_source(directory: Path, folder: str, name: str, *, shards: int, held: int) -> SourceEntry:
    """Write the shards of a source into a folder, and `held` documents of validation."""
    entries = [
        put_texts(
            directory,
            f"{folder}/{i:05d}",
            name=f"{name}-{i}",
            rows=12,
            first_order=(i << 64) // shards + 5,
        )
        for i in range(shards)
    ]
    validation = (
        (put_texts(directory, f"{folder}/validation-00000", name=f"{name}-v", rows=held),)
        if held
        else ()
    )
    return SourceEntry(shards=tuple(entries), validation=validation)


def build(directory: Path) -> Manifest:
    """Write the dataset: news in two generations, books in the first alone."""
    first = manifest_of(
        directory,
        {
            "books": put_source(directory, f"{FIRST}/books", "books", shards=2, held=0),
            "news": put_source(directory, f"{FIRST}/news", "news", shards=4, held=3),
        },
        corpus="library",
        pieces=_PIECES,
        special={"eos": EOS, "cls": CLS, "pad": PAD},
        name=FIRST,
        fingerprint="00aa",
    )
    more = put_source(directory, f"{SECOND}/news", "later", shards=1, held=2)
    second = Generation(
        number=2,
        name=SECOND,
        fingerprint="00bb",
        inputs=(),
        sources={"news": more},
        audit=(),
        signatures=(),
        rejects=(),
        accounting={},
    )
    manifest = replace(first, number=2, generations=(*first.generations, second))
    write_manifest(directory, manifest)
    return manifest
