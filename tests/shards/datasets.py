"""Writes datasets for tests: shards of given tokens, and a manifest that names the shards."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shards.__main__ import main
from shards.manifest import (
    TRAIN,
    VALIDATION,
    Generation,
    Manifest,
    ShardEntry,
    SourceEntry,
    TokenizerEntry,
    read_manifest,
    write_manifest,
)
from shards.storage.files import canonical_json
from shards.vocabulary import vocabulary_table, write_vocabulary
from shards.writer import write_shard


def put_shard(
    directory: Path,
    path: str,
    /,
    documents: Sequence[Sequence[int]],
    *,
    prompts: Sequence[int] | None = None,
    order: Sequence[int] | None = None,
    dtype: str = "<u2",
    **columns: pa.Array,
) -> ShardEntry:
    """Write a shard of documents, each given as token ids that end in eos, and of columns."""
    lengths = [len(document) for document in documents]
    table = pa.table(
        {
            "tokens": pa.array(lengths, pa.int32()),
            "prompt_tokens": pa.array(prompts or [0] * len(lengths), pa.int32()),
            "order": pa.array(order or range(len(lengths)), pa.uint64()),
            **columns,
        }
    )
    return write_shard(
        directory / path,
        table,
        directory=directory,
        tokens=[np.array(document, dtype) for document in documents],
        dtype=np.dtype(dtype),
    )


def put_dataset(
    directory: Path, shards: Mapping[str, Mapping[str, Any]], *, corpus: str = "text", **fields: Any
) -> Manifest:
    """Write a dataset, and return the manifest.

    Args:
        directory: The folder of the dataset.
        shards: Arguments of `put_shard` by path: GENERATION/SOURCE/NUMBER or validation-NUMBER.
        corpus: The name of the corpus.
        fields: Arguments of `manifest_of`: pieces, special, and keys of the first generation.
    """
    found: dict[str, dict[str, dict[str, list[ShardEntry]]]] = {}
    for path, given in shards.items():
        name, source, number = path.split("/")
        split = VALIDATION if number.startswith(VALIDATION) else TRAIN
        splits = found.setdefault(name, {}).setdefault(source, defaultdict(list))
        splits[split].append(put_shard(directory, path, **given))
    generations: list[dict[str, Any]] = [
        {
            "number": number,
            "name": name,
            "fingerprint": name.partition("-")[2],
            "sources": {
                source: SourceEntry(
                    shards=tuple(splits[TRAIN]), validation=tuple(splits[VALIDATION])
                )
                for source, splits in sources.items()
            },
        }
        for number, (name, sources) in enumerate(found.items(), 1)
    ]
    manifest = manifest_of(directory, corpus=corpus, **{**generations[0], **fields})
    dtype = np.dtype(next(iter(shards.values())).get("dtype", "<u2")).name
    manifest = replace(manifest, tokenizer=replace(manifest.tokenizer, dtype=dtype))
    (first,) = manifest.generations
    later = [replace(first, inputs=(), audit=(), accounting={}, **each) for each in generations[1:]]
    manifest = replace(manifest, number=len(generations), generations=(first, *later))
    write_manifest(directory, manifest)
    return manifest


def manifest_of(
    directory: Path,
    sources: Mapping[str, SourceEntry],
    *,
    corpus: str,
    pieces: Sequence[bytes],
    special: Mapping[str, int],
    **generation: Any,
) -> Manifest:
    """Write a vocabulary, and return a manifest of one generation, which the caller must write.

    `generation` has fields of `Generation`: at least the name and the fingerprint.
    """
    size = 128 * -(-len(pieces) // 128)
    table = vocabulary_table(pieces, special=set(special.values()), size=size)
    tables: dict[str, Any] = dict.fromkeys(("inputs", "audit", "signatures", "rejects"), ())
    return Manifest(
        number=1,
        lineage="0" * 64,
        corpus=corpus,
        options={},
        tokenizer=TokenizerEntry(
            spec="bytes",
            name="bytes",
            sha256="0" * 64,
            pieces=len(pieces),
            vocabulary_size=size,
            dtype="uint16",
            special=special,
        ),
        vocabulary=write_vocabulary(directory, table),
        libraries={},
        generations=(
            Generation(sources=sources, **{**tables, "number": 1, "accounting": {}, **generation}),
        ),
    )


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a manifest, with its hash added."""
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    return {**content, "sha256": hashlib.sha256(canonical_json(content)).hexdigest()}


def put_odd(directory: Path, texts: Sequence[str], name: Callable[[], str]) -> None:
    """Write a dataset of texts, one token per byte, with odd names wherever names are possible."""
    columns = {
        column: pa.array([name() for _ in texts])
        for column in ("path", "id", "url", "language", name())
    }
    shard = {
        "documents": [[*text.encode(), 256] for text in texts],
        "order": [number << 50 for number in range(len(texts))],
        "position": pa.array(range(len(texts)), pa.int64()),
        **columns,
    }
    manifest = put_dataset(
        directory,
        {"g0001-00/web/00000": shard},
        corpus=name(),
        pieces=[*(bytes([i]) for i in range(256)), name().encode()],
        special={"eos": 256, "pad": 257},
        accounting={"web": {"read": 4, "kept": 3, "dropped": {name(): 1}, name(): 1}},
    )
    manifest = replace(
        manifest,
        tokenizer=replace(manifest.tokenizer, spec=name(), name=name()),
        options={name(): name(), "languages": [name()]},
        libraries={name(): name()},
    )
    write_manifest(directory, manifest)


def tree(folder: Path) -> dict[str, bytes]:
    """Return the content of all files of a folder except the lock."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def take_down(directory: Path | str, *names: str) -> None:
    """Remove the documents that have these names."""
    flags = [flag for name in names for flag in ("--id", name)]
    assert main(["remove", str(directory), *flags, "--reason", "letter"]) == 0


def remove(directory: Path, rows: Sequence[tuple[str, str, int, int]], *, number: int = 2) -> None:
    """Remove rows (source, split, shard, row) of the first generation by manifest `number`."""
    sources = read_manifest(directory).generations[0].sources
    names = [
        f"{sources[source].split(split)[shard].path}:{row}" for source, split, shard, row in rows
    ]
    take_down(directory, *names)
    assert read_manifest(directory).number == number
