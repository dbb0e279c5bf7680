"""llm.c: files of at most 100 M tokens, each behind a header, as its data loader reads them.

      0          4         8          12                       1024
    | 20240520 |    1    | tokens n | zeros, up to 256 int32 | uint16[n]

    | eot document 0 | eot document 1 | …

Its documents begin with the end-of-text token, ours end with it: so the stream of a split moves on
by one token, with one more in front and without the last. As in dev/data/fineweb.py of llm.c a file
ends anywhere in a document, validation has the number 0, and training begins with 1.

The layout is that of karpathy/llm.c, llmc/dataloader.h.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from shards.errors import UserError
from shards.exports.file import ExportFile, Settings
from shards.exports.stream import SplitStream
from shards.manifest import TRAIN, VALIDATION, TokenizerEntry
from shards.storage.files import Bytes

PREFIX = "fineweb"
TOKENS_PER_FILE = 100_000_000
"""As in llm.c's own scripts."""

MOST_TOKENS = (2**31 - 1024) // 2 - 1
"""Its loader seeks with a C int: a file ends below 2 GiB."""

ROWS = 50_304
"""Of the embedding of its GPT-2 models: 50,257 ids, padded."""

_MAGIC, _VERSION, _HEADER_INTS = 20_240_520, 1, 256
_SPLITS = {TRAIN: ("train", 1), VALIDATION: ("val", 0)}
"""The word in a file's name, and the number of the first."""


def check(tokenizer: TokenizerEntry, settings: Settings) -> None:
    """Check that a dataset fits the format.

    Raises:
        UserError: It does not.
    """
    if tokenizer.token_dtype.itemsize != np.dtype("<u2").itemsize:
        raise UserError(
            f"--to llm.c writes tokens as uint16, which ends at 65,535; the tokenizer "
            f"{tokenizer.name} of this dataset has a vocabulary of {tokenizer.vocabulary_size:,}, "
            "and its tokens are int32. llm.c reads nothing else: make a dataset with a vocabulary "
            "of at most 65,536 (--tokenizer tiktoken:gpt2 has 50,257), or export for another "
            "project: --to datatrove, olmo or numpy take it as it is."
        )
    if settings.tokens_per_file > MOST_TOKENS:
        raise UserError(
            f"--tokens-per-file {settings.tokens_per_file:,} makes files over 2 GiB, in which "
            f"llm.c's loader cannot seek: give at most {MOST_TOKENS:,}."
        )


def files(stream: SplitStream, split: str, settings: Settings) -> Iterator[ExportFile]:
    """Yield the files of a split, all of about the same size.

    llm.c ends where a file has less than one batch, so that no small one is left at the end.
    """
    word, first = _SPLITS[split]
    total = -(-stream.tokens // settings.tokens_per_file)
    for index in range(total):
        start, stop = (stream.tokens * edge // total for edge in (index, index + 1))
        yield ExportFile(
            path=f"{settings.prefix}_{word}_{first + index:06d}.bin",
            bytes=4 * _HEADER_INTS + 2 * (stop - start),
            content=partial(_content, stream, start, stop),
        )


def _content(stream: SplitStream, start: int, stop: int) -> Iterator[Bytes]:
    header = np.zeros(_HEADER_INTS, "<i4")
    header[:3] = _MAGIC, _VERSION, stop - start
    yield header
    if start == 0:
        yield np.array([stream.tokenizer.special["eos"]], "<u2")
    yield from stream.blocks(max(start - 1, 0), stop - 1)
