"""The formats of an export: what each takes, its files, and how its project opens them."""

import re
from collections.abc import Callable, Iterator, Mapping

from shards.errors import UserError
from shards.exports import datatrove, llm_c, npy, olmo
from shards.exports.file import ExportFile, Settings
from shards.exports.stream import SplitStream
from shards.manifest import TRAIN, VALIDATION
from shards.paths import check_name

LLM_C = "llm.c"

FORMATS: Mapping[str, Callable[[SplitStream, str, Settings], Iterator[ExportFile]]] = {
    LLM_C: llm_c.files,
    "datatrove": datatrove.files,
    "olmo": olmo.files,
    "numpy": npy.files,
}
"""The files of a split, by format."""

_OPENED = {
    LLM_C: './train_gpt2cu -i "{output}/{prefix}_train_*.bin" -j "{output}/{prefix}_val_*.bin"',
    "datatrove": 'DatatroveFolderDataset("{output}/train", seq_len=…, token_size={size})',
    "olmo": 'NumpyFSLDatasetConfig(paths=["{output}/train/*.npy"], expand_glob=True, '
    "dtype=NumpyDatasetDType.uint{bits}, …)",
    "numpy": 'numpy.load("{output}/train/000000_{source}.npy", mmap_mode="r")',
}
"""How the other project opens an export."""


def check_flags(to: str, *, prefix: str | None, tokens_per_file: int | None) -> None:
    """Check flags that only one format has; None where nothing was said.

    Raises:
        UserError: The format has no such thing, or cannot take the value.
    """
    for flag, value in (("--prefix", prefix), ("--tokens-per-file", tokens_per_file)):
        if value is not None and to != LLM_C:
            raise UserError(
                f"{flag} {value} is for --to {LLM_C} only; --to {to} has no such thing: leave it "
                "out."
            )
    if prefix is not None:
        try:
            check_name(prefix)
        except ValueError as error:
            raise UserError(f"--prefix begins the names of files: {error}.") from error
        if wildcard := re.search(r"[*?\[\]]", prefix):
            raise UserError(
                f"--prefix {prefix} has {wildcard[0]!r} in it, which llm.c takes for a wildcard: "
                "leave it out."
            )


def files(splits: Mapping[str, SplitStream], settings: Settings) -> list[ExportFile]:
    """Return the files of all splits; validation, which is small, comes first.

    Raises:
        UserError: There is nothing to export, or it does not fit the format.
    """
    if not splits[TRAIN].tokens:
        raise UserError(
            f"nothing to export: {', '.join(settings.sources)} has no tokens to train on."
        )
    if settings.format == LLM_C:
        llm_c.check(splits[TRAIN].tokenizer, settings)
    return [
        file
        for split in (VALIDATION, TRAIN)
        if splits[split].tokens
        for file in FORMATS[settings.format](splits[split], split, settings)
    ]


def notes(splits: Mapping[str, SplitStream], settings: Settings, output: object) -> Iterator[str]:
    """Yield what a person should know of an export that its files do not say.

    The last line is how the other project opens it.
    """
    train = splits[TRAIN]
    if removed := sum(stream.removed for stream in splits.values()):
        yield f"{removed:,} removed documents were left out"
    if len(train.sources) > 1:
        yield (
            f"{len(train.sources)} sources follow one another, as in the dataset "
            f"({', '.join(train.sources)}): to mix them, export each with --source"
        )
    prompts = sum(stream.prompts for stream in splits.values())
    if prompts and settings.format == LLM_C:
        yield (
            f"{prompts:,} documents begin with tokens that carry no loss, which {LLM_C} "
            "cannot say: they are trained on like the rest"
        )
    if not splits[VALIDATION].tokens:
        yield "there is no validation split: the dataset holds nothing back"
    rows = train.tokenizer.vocabulary_size
    if settings.format == LLM_C and rows > llm_c.ROWS:
        yield (
            f"llm.c's GPT-2 models have {llm_c.ROWS:,} rows for tokens, this dataset's vocabulary "
            f"has {rows:,}: give the model as many"
        )
    size = train.tokenizer.token_dtype.itemsize
    yield _OPENED[settings.format].format(
        output=output, prefix=settings.prefix, size=size, bits=8 * size, source=train.sources[0]
    )
