"""Export formats: the files that each has for a split, and how its project opens them.

llm.c: files of at most 100 M tokens, each after a header, as karpathy/llm.c's llmc/dataloader.h
reads them. In llm.c documents begin with the end-of-text token, but in shards they end with it:
each split gets an end-of-text token in front, and its last token is left out. As in llm.c's
dev/data/fineweb.py, a file may end within a document, and validation has the number 0.

      0          4         8          12                       1024
    | 20240520 |    1    | tokens n | zeros, up to 256 int32 | uint16[n]

datatrove: a folder for each split, as DatatroveFolderDataset and Nanotron read it
(datatrove/pipeline/tokens/tokenizer.py, class TokenizedFile).

    000000_wudao.ds            the tokens of a shard, uint16 or uint32, nothing else
    000000_wudao.ds.index      uint64[documents]: the end of each document, in tokens
    000000_wudao.ds.metadata   tokenizer|bytes per token, then the number of tokens, also rounded
    000000_wudao.ds.loss       bool[tokens]: whether a token carries loss; left out if all do

OLMo-core: as its NumpyDataset classes read it (olmo_core/data/numpy_dataset.py and utils.py).

    train/000000_wudao.npy              the tokens of a shard, uint16 or uint32, without a header
    train/000000_wudao.csv.gz           a line per document: the tokens where it begins and ends
    train_label_mask/000000_wudao.npy   bool[tokens]: whether a token carries loss, for every file
                                        of a split in which some tokens do not

NumPy: files that `numpy.load(path, mmap_mode="r")` opens, for a custom loader; the header is
that of numpy.lib.format, version 1.0.

    train/000000_wudao.npy         uint16 or int32 [tokens]: the tokens of a shard
    train_ends/000000_wudao.npy    int64[documents]: the end of each document, in tokens
    train_loss/000000_wudao.npy    as OLMo-core's label mask
"""

import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shards.errors import UserError
from shards.exports.split import ExportedShard, ExportedSplit
from shards.manifest import TRAIN, VALIDATION
from shards.paths import check_name
from shards.storage.files import Bytes
from shards.storage.remote import AnyPath

LLM_C = "llm.c"
PREFIX = "fineweb"
TOKENS_PER_FILE = 100_000_000
"""The same number as in llm.c's scripts."""

_MAX_TOKENS = (2**31 - 1024) // 2 - 1
"""The maximum number of tokens per file, which is below 2 GiB: llm.c's loader seeks with an int."""

_ROWS = 50_304
"""Rows of the embedding in llm.c's GPT-2 models: 50,257 ids, padded."""

_MAGIC, _VERSION, _HEADER_INTS = 20_240_520, 1, 256
_NPY_HEADER_BYTES = 128
_GZIP = 31
"""zlib's `wbits` for a gzip file whose header has neither a name nor a time."""

_LINES_AT_ONCE = 4096
_LINE_BYTES = 5
"""Approximate compressed size of a line of the .csv.gz file."""


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """The content and the layout of an export."""

    format: str
    sources: tuple[str, ...]
    prefix: str = ""
    """The prefix of file names, for formats whose file names have a prefix."""
    tokens_per_file: int = 0
    """The maximum number of tokens per file, for formats that do not write one file per shard."""
    copy: bool = False
    """Whether every file is a copy instead of a link to a shard."""


@dataclass(frozen=True, kw_only=True)
class ExportFile:
    """A file of an export before it is written."""

    path: str
    """The path relative to the export, with forward slashes."""
    bytes: int
    """The size of the file in bytes, approximate if compressed; 0 if the file is small."""
    content: Callable[[], Iterable[Bytes]]
    """Returns the bytes of the file in blocks."""
    same: Callable[[], AnyPath] | None = None
    """Checks and returns a file of the dataset with the same bytes; None if no file has them."""


def _file(path: str, size: int, content: Callable[..., Iterable[Bytes]], *of: Any) -> ExportFile:
    return ExportFile(path=path, bytes=size, content=partial(content, *of))


def _payload(exported: ExportedSplit, shard: ExportedShard, path: str) -> ExportFile:
    """Return the file of a shard's tokens alone, a link to the shard if no document is removed."""
    return ExportFile(
        path=path,
        bytes=shard.tokens * exported.tokenizer.token_dtype.itemsize,
        content=partial(exported.blocks, shard.start, shard.stop),
        same=None if len(shard.removed) else partial(exported.payload, shard),
    )


def _named(exported: ExportedSplit) -> Iterable[tuple[str, ExportedShard]]:
    """Yield each shard with tokens, and a name that keeps the order of the shards: 000007_wudao."""
    shards = (shard for shard in exported.shards if shard.tokens)
    return ((f"{number:06d}_{shard.source}", shard) for number, shard in enumerate(shards))


def _ends(exported: ExportedSplit, shard: ExportedShard, dtype: str) -> Iterator[Bytes]:
    yield np.cumsum(exported.lengths(shard)).astype(dtype)


def _llm_c(exported: ExportedSplit, split: str, settings: ExportSettings) -> Iterator[ExportFile]:
    """Yield files of about equal size, because llm.c fails at files smaller than a batch."""
    word, first = {TRAIN: ("train", 1), VALIDATION: ("val", 0)}[split]
    total = -(-exported.tokens // settings.tokens_per_file)
    for index in range(total):
        start, stop = (exported.tokens * edge // total for edge in (index, index + 1))
        path = f"{settings.prefix}_{word}_{first + index:06d}.bin"
        size = 4 * _HEADER_INTS + 2 * (stop - start)
        yield _file(path, size, _with_header, exported, start, stop)


def _with_header(exported: ExportedSplit, start: int, stop: int) -> Iterator[Bytes]:
    header = np.zeros(_HEADER_INTS, "<i4")
    header[:3] = _MAGIC, _VERSION, stop - start
    yield header
    if start == 0:
        yield np.array([exported.tokenizer.special["eos"]], "<u2")
    yield from exported.blocks(max(start - 1, 0), stop - 1)


def _datatrove(exported: ExportedSplit, split: str, _: ExportSettings) -> Iterator[ExportFile]:
    for name, shard in _named(exported):
        path = f"{split}/{name}.ds"
        yield _payload(exported, shard, path)
        yield _file(f"{path}.index", 8 * shard.documents, _ends, exported, shard, "<u8")
        yield _file(f"{path}.metadata", 0, _metadata, exported, shard)
        if shard.prompts:
            yield _file(f"{path}.loss", shard.tokens, exported.loss, shard)


def _metadata(exported: ExportedSplit, shard: ExportedShard) -> Iterator[Bytes]:
    tokenizer = exported.tokenizer
    size = tokenizer.token_dtype.itemsize
    yield f"{tokenizer.name}|{size}\n{shard.tokens}\n{_humanized(shard.tokens)}".encode()


def _humanized(count: int) -> str:
    """Return a number of tokens as `humanize.metric` writes it, with three digits: 12.3 kT."""
    exponent = min(len(str(count)) - 1, 29)
    power = exponent // 3
    if power and round(count / 1000**power, 2 - exponent % 3) >= 10 ** (exponent % 3 + 1):
        exponent += 1
        power = exponent // 3
    digits = 2 - exponent % 3
    return f"{count / 1000**power:.{digits}f} {['', *'kMGTPEZYR'][power]}T"


def _olmo(exported: ExportedSplit, split: str, _: ExportSettings) -> Iterator[ExportFile]:
    for name, shard in _named(exported):
        yield _payload(exported, shard, f"{split}/{name}.npy")
        size = _LINE_BYTES * shard.documents
        yield _file(f"{split}/{name}.csv.gz", size, _csv, exported, shard)
        if exported.prompts:
            yield _file(f"{split}_label_mask/{name}.npy", shard.tokens, exported.loss, shard)


def _csv(exported: ExportedSplit, shard: ExportedShard) -> Iterator[Bytes]:
    packer = zlib.compressobj(wbits=_GZIP)
    edges = np.concatenate([[0], np.cumsum(exported.lengths(shard))]).tolist()
    for first in range(0, len(edges) - 1, _LINES_AT_ONCE):
        rows = zip(edges[first : first + _LINES_AT_ONCE], edges[first + 1 :], strict=False)
        text = "".join(f"{start},{stop}\n" for start, stop in rows)
        yield packer.compress(text.encode())
    yield packer.flush()


def _numpy(exported: ExportedSplit, split: str, _: ExportSettings) -> Iterator[ExportFile]:
    dtype = exported.tokenizer.token_dtype.str
    for name, shard in _named(exported):
        tokens = partial(exported.blocks, shard.start, shard.stop)
        yield _array(f"{split}/{name}.npy", dtype, shard.tokens, tokens)
        ends = partial(_ends, exported, shard, "<i8")
        yield _array(f"{split}_ends/{name}.npy", "<i8", shard.documents, ends)
        if exported.prompts:
            loss = partial(exported.loss, shard)
            yield _array(f"{split}_loss/{name}.npy", "|b1", shard.tokens, loss)


def _array(path: str, dtype: str, length: int, blocks: Callable[[], Iterable[Bytes]]) -> ExportFile:
    """Return the .npy file of an array with this type and length."""
    sink = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(sink, described)
    size = _NPY_HEADER_BYTES + np.dtype(dtype).itemsize * length
    return ExportFile(
        path=path, bytes=size, content=lambda: itertools.chain([sink.getvalue()], blocks())
    )


@dataclass(frozen=True)
class ExportFormat:
    """An export format."""

    files: Callable[[ExportedSplit, str, ExportSettings], Iterator[ExportFile]]
    """Returns the files of a split."""
    opened: str
    """A template that shows how the other project opens the export; output, prefix, size, bits and
    source are filled in."""


FORMATS: Mapping[str, ExportFormat] = {
    LLM_C: ExportFormat(
        _llm_c,
        './train_gpt2cu -i "{output}/{prefix}_train_*.bin" -j "{output}/{prefix}_val_*.bin"',
    ),
    "datatrove": ExportFormat(
        _datatrove, 'DatatroveFolderDataset("{output}/train", seq_len=…, token_size={size})'
    ),
    "olmo": ExportFormat(
        _olmo,
        'NumpyFSLDatasetConfig(paths=["{output}/train/*.npy"], expand_glob=True, '
        "dtype=NumpyDatasetDType.uint{bits}, …)",
    ),
    "numpy": ExportFormat(
        _numpy, 'numpy.load("{output}/train/000000_{source}.npy", mmap_mode="r")'
    ),
}


def check_flags(to: str, *, prefix: str | None, tokens_per_file: int | None) -> None:
    """Check flags that only one format has; the value of a flag that is not given is None.

    Raises:
        UserError: The format has no such flag, or does not accept the value.
    """
    for flag, value in (("--prefix", prefix), ("--tokens-per-file", tokens_per_file)):
        if value is not None and to != LLM_C:
            raise UserError(
                f"{flag} {value} works only with --to {LLM_C}, not with --to {to}: omit it."
            )
    if prefix is not None:
        try:
            check_name(prefix)
        except ValueError as error:
            raise UserError(f"--prefix is the start of file names: {error}.") from error
        if wildcard := re.search(r"[*?\[\]]", prefix):
            raise UserError(
                f"--prefix {prefix} contains {wildcard[0]!r}, which llm.c treats as a wildcard: "
                "choose another prefix."
            )


def files(splits: Mapping[str, ExportedSplit], settings: ExportSettings) -> list[ExportFile]:
    """Return the files of all splits; validation, which is small, comes first.

    Raises:
        UserError: There is nothing to export, or the data do not fit the format.
    """
    if not splits[TRAIN].tokens:
        raise UserError(f"nothing to export: {', '.join(settings.sources)} has no training tokens.")
    if settings.format == LLM_C:
        _check_llm_c(splits[TRAIN], settings)
    return [
        file
        for split in (VALIDATION, TRAIN)
        if splits[split].tokens
        for file in FORMATS[settings.format].files(splits[split], split, settings)
    ]


def _check_llm_c(exported: ExportedSplit, settings: ExportSettings) -> None:
    """Check that a dataset fits llm.c."""
    tokenizer = exported.tokenizer
    if tokenizer.token_dtype.itemsize != np.dtype("<u2").itemsize:
        raise UserError(
            f"--to llm.c writes tokens as uint16, of at most 65,535; the tokenizer "
            f"{tokenizer.name} of this dataset has a vocabulary of {tokenizer.vocabulary_size:,}, "
            "and its tokens are int32. llm.c reads no other type: make a dataset with a vocabulary "
            "of at most 65,536 (--tokenizer tiktoken:gpt2 has 50,257), or export to another "
            "project: --to datatrove, olmo and numpy support this vocabulary."
        )
    if settings.tokens_per_file > _MAX_TOKENS:
        raise UserError(
            f"--tokens-per-file {settings.tokens_per_file:,} makes files over 2 GiB, which llm.c's "
            f"loader cannot seek in: give at most {_MAX_TOKENS:,}."
        )


def notes(
    splits: Mapping[str, ExportedSplit], settings: ExportSettings, output: object
) -> Iterator[str]:
    """Yield notes for the user about an export.

    The last line shows how the other project opens the export.
    """
    train = splits[TRAIN]
    if removed := sum(exported.removed for exported in splits.values()):
        yield f"{removed:,} removed documents were left out"
    if len(train.sources) > 1:
        yield (
            f"the {len(train.sources)} sources are not mixed, but follow one another "
            f"({', '.join(train.sources)}): to mix them, export each with --source"
        )
    prompts = sum(exported.prompts for exported in splits.values())
    if prompts and settings.format == LLM_C:
        yield (
            f"{prompts:,} documents begin with prompts, which carry no loss here; {LLM_C} has no "
            "loss mask and trains on them too"
        )
    if not splits[VALIDATION].tokens:
        yield "there is no validation split, because the dataset has none"
    rows = train.tokenizer.vocabulary_size
    if settings.format == LLM_C and rows > _ROWS:
        yield (
            f"llm.c's GPT-2 models have embeddings of {_ROWS:,} rows, this dataset's vocabulary "
            f"has {rows:,}: enlarge the model's vocabulary"
        )
    size = train.tokenizer.token_dtype.itemsize
    yield FORMATS[settings.format].opened.format(
        output=output, prefix=settings.prefix, size=size, bits=8 * size, source=train.sources[0]
    )
