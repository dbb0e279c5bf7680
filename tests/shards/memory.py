"""Makes shards in memory, and finds the cuts of windows by a slow, simple method."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from shards.manifest import ShardEntry
from shards.reader import Shard
from shards.sampling.windows import WindowVocabulary

EOS, CLS, PAD, END = 0, 1, 2, 3
"""Special tokens; END is the only token that ends a sentence."""
FIRST = 4
"""The first id that stands for text; all higher ids also do."""
VOCABULARY = WindowVocabulary(sentence_end=np.arange(1 << 16) == END, cls=CLS, pad=PAD)


def shard(
    documents: Sequence[Sequence[int]],
    *,
    prompts: Sequence[int] | None = None,
    removed: Sequence[int] = (),
) -> Shard:
    """Return a shard of documents, each given with the final eos."""
    lengths = [len(document) for document in documents]
    tokens = np.array([token for document in documents for token in document], "<i4")
    offsets = np.cumsum([0, *lengths], dtype=np.int64)[:-1]
    table = pa.table(
        {
            "tokens": pa.array(lengths, pa.int32()),
            "prompt_tokens": pa.array(prompts or [0] * len(lengths), pa.int32()),
        }
    )
    return Shard(
        directory=Path("memory"),
        entry=ShardEntry(path="g/s/0", documents=len(lengths), tokens=len(tokens), files={}),
        tokens=tokens,
        documents=table,
        offsets=offsets,
        removed=np.array(removed, np.int64),
    )


def numbered(lengths: Sequence[int], **options: Sequence[int]) -> Shard:
    """Return a shard whose token at p is FIRST + p, except at the position of an eos."""
    ends = np.cumsum(lengths).tolist()
    documents = [
        [*range(FIRST + end - length, FIRST + end - 1), EOS]
        for length, end in zip(lengths, ends, strict=True)
    ]
    return shard(documents, **options)


def cuts(shard: Shard, *, stride: int, slack: int, phase: int) -> Iterator[int]:
    """Yield each window's cut and the end of the last, looking at one token after another."""
    size = len(shard.tokens)
    document_ends = {0, *shard.offsets.tolist()}
    phase %= size
    positions = [*range(phase, phase + size, stride), phase + size]

    def cut(x: int) -> int:
        near = range(x, x + slack + 1)
        at_document = (p for p in near if p % size in document_ends)
        at_sentence = (p for p in near if shard.tokens[(p - 1) % size] == END)
        # A run continues past the shard's end only if it ends at the end of a document.
        return next(at_document, next(at_sentence, x))

    yield from map(cut, positions)
