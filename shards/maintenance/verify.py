"""Checks a dataset by reading every file that its manifest names.

In a copy with only a node's share, other files may be missing; those that exist are checked too.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from shards.commands.output import quantity
from shards.commands.progress import track_files
from shards.errors import DamageError
from shards.format import ARROW, BIN, IDX, SUFFIXES, read_index
from shards.manifest import TRAIN, VALIDATION, ShardEntry, TokenizerEntry, check_file_locations
from shards.reader import Dataset, Shard
from shards.removals import check_removals
from shards.storage.files import FileEntry, crc32c, size_if_there
from shards.storage.remote import AnyPath

_BLOCK_TOKENS = 16 << 20


def verify(dataset: Dataset, *, needed: Collection[str] | None = None) -> Iterator[str]:
    """Yield a line for every problem: the file, the expected value and the actual value.

    Args:
        dataset: The dataset.
        needed: The paths of the files that must exist; None for all files.

    Raises:
        DamageError: A link leads out of the folder.
    """
    check_file_locations(dataset.directory, dataset.manifest)
    damaged: set[str] = set()
    for path, entry in track_files("verify", dataset.manifest.files()):
        if problem := check_file(dataset.directory / path, entry):
            damaged.add(path)
            if needed is None or path in needed or size_if_there(dataset.directory / path) >= 0:
                yield problem
    vocabulary, size = dataset.manifest.vocabulary, dataset.manifest.tokenizer.vocabulary_size
    if vocabulary.path not in damaged and (rows := len(dataset.vocabulary)) != size:
        yield f"{vocabulary.path} has {rows} rows, {size} expected"
    whole = tuple(
        removal for removal in dataset.manifest.removals if removal.documents.path not in damaged
    )
    yield from check_removals(dataset.directory, replace(dataset.manifest, removals=whole))
    for split in (TRAIN, VALIDATION):
        for _, _, source in dataset.manifest.source_entries():
            yield from _check_stream(dataset, source.split(split), damaged=damaged, split=split)


def check_file(path: AnyPath, entry: FileEntry) -> str | None:
    """Return the problem with a file's size or checksum; None if both are right."""
    if (num_bytes := size_if_there(path)) < 0:
        return f"{path} is missing ({entry.bytes:,} bytes expected)"
    if num_bytes != entry.bytes:
        return f"{path} has {num_bytes:,} bytes, {entry.bytes:,} expected"
    if (checksum := crc32c(path)) != entry.crc32c:
        return f"{path} has crc32c {checksum:08x}, {entry.crc32c:08x} expected"
    return None


def _check_stream(
    dataset: Dataset, entries: tuple[ShardEntry, ...], *, damaged: set[str], split: str
) -> Iterator[str]:
    """Yield the problems with the shards of one source of one generation, which are in order."""
    tokenizer = dataset.manifest.tokenizer
    last = 0
    for index, entry in enumerate(entries):
        if not damaged.isdisjoint(f"{entry.path}.{suffix}" for suffix in SUFFIXES):
            continue
        try:
            shard = Shard.open(dataset.directory, entry, dtype=tokenizer.token_dtype)
            yield from check_shard(shard, tokenizer)
        except DamageError as error:
            yield str(error)
            continue
        if not len(shard):
            continue
        first = shard.documents["order"][0].as_py()
        if first < last:
            yield f"{shard.file(ARROW)} begins before the end of the previous shard"
        last = shard.documents["order"][-1].as_py()
        indices = {(order * len(entries)) >> 64 for order in (first, last)}
        if split == TRAIN and indices != {index}:
            yield f"{shard.file(ARROW)} contains documents from another shard's range of the order"


def check_shard(shard: Shard, tokenizer: TokenizerEntry) -> Iterator[str]:
    """Yield a line for each contradiction within a shard.

    Raises:
        DamageError: the index cannot be read.
    """
    arrow = shard.file(ARROW)
    lengths = shard.documents["tokens"].to_numpy()
    prompts = shard.documents["prompt_tokens"].to_numpy()
    order = shard.documents["order"].to_numpy()
    dtype, index_lengths = read_index(shard.file(IDX))
    if dtype != shard.tokens.dtype:
        yield f"{shard.file(IDX)} says {dtype} tokens, the manifest {shard.tokens.dtype}"
    if not np.array_equal(index_lengths, lengths):
        yield f"{shard.file(IDX)} has lengths that differ from those in {arrow}"
    if (prompts < 0).any() or (prompts >= lengths).any():
        yield f"{arrow} has a prompt that is negative or not shorter than its document"
    if (order[1:] < order[:-1]).any():
        yield f"{arrow} is not sorted by order"
    ends = np.cumsum(lengths, dtype=np.int64)
    if (lengths < 1).any() or not np.array_equal(shard.offsets, ends - lengths):
        yield f"{arrow} has offsets that do not follow from its lengths"
    elif len(ends) and ends[-1] != len(shard.tokens):
        yield f"{arrow} describes {ends[-1]} tokens, {shard.file(BIN)} has {len(shard.tokens)}"
    else:
        yield from _check_tokens(shard, ends, tokenizer=tokenizer)


def _check_tokens(shard: Shard, ends: np.ndarray, *, tokenizer: TokenizerEntry) -> Iterator[str]:
    eos = tokenizer.special["eos"]
    if len(rows := np.flatnonzero(shard.tokens[ends - 1] != eos)):
        yield (
            f"{shard.file(BIN)}: eos ({eos}) is not the last token of "
            f"{quantity(len(rows), 'document')}, the first {rows[0]}"
        )
    starts = range(0, len(shard.tokens), _BLOCK_TOKENS)
    blocks = [shard.tokens[start : start + _BLOCK_TOKENS] for start in starts]
    low = min((int(block.min()) for block in blocks), default=0)
    high = max((int(block.max()) for block in blocks), default=0)
    if low < 0 or high >= tokenizer.vocabulary_size:
        yield (
            f"{shard.file(BIN)} contains token ids {low} to {high}, "
            f"the vocabulary has {tokenizer.vocabulary_size}"
        )
