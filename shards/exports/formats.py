"""The formats of an export: what each takes, its files, and how its project opens them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shards.errors import UserError
from shards.exports import datatrove, llm_c, mds, npy, olmo
from shards.exports.file import ExportFile, Settings
from shards.exports.kept import Kept
from shards.manifest import TRAIN, VALIDATION, TokenizerEntry
from shards.paths import check_name
from shards.spelling import expected

LLM_C, DATATROVE, OLMO, NUMPY, MDS = NAMES = ("llm.c", "datatrove", "olmo", "numpy", "mds")

_FILES: Mapping[str, Callable[[Kept, str, Settings], Iterator[ExportFile]]] = {
    LLM_C: llm_c.files,
    DATATROVE: datatrove.files,
    OLMO: olmo.files,
    NUMPY: npy.files,
    MDS: mds.files,
}

_WITH_LOSS = (DATATROVE, OLMO, NUMPY)
"""Those that can say which tokens carry no loss."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a person asked for; None where nothing was said."""

    format: str
    sources: tuple[str, ...] | None = None
    prefix: str | None = None
    tokens_per_file: int | None = None
    sequence_length: int | None = None


def settled(choices: Choices, tokenizer: TokenizerEntry, sources: Sequence[str]) -> Settings:
    """Return the settings of an export.

    Args:
        choices: What was asked for.
        tokenizer: Of the dataset.
        sources: Of the dataset.

    Raises:
        UserError: The dataset has no such source, the format no such choice, or it cannot hold the
            dataset's tokens.
    """
    _check_choices(choices)
    chosen = tuple(sources) if choices.sources is None else choices.sources
    if unknown := [name for name in chosen if name not in sources]:
        raise UserError(
            f"--source {unknown[0]}: the dataset has no such source: "
            f"{expected(unknown[0], sources)}."
        )
    per_file = {LLM_C: llm_c.TOKENS_PER_FILE, MDS: mds.FILE_BYTES // tokenizer.token_dtype.itemsize}
    settings = Settings(
        format=choices.format,
        sources=tuple(sorted(set(chosen))),
        prefix=(choices.prefix or llm_c.PREFIX) if choices.format == LLM_C else "",
        tokens_per_file=choices.tokens_per_file or per_file.get(choices.format, 0),
        sequence_length=choices.sequence_length or 0,
    )
    if settings.format == LLM_C:
        llm_c.check(tokenizer, settings)
    return settings


def _check_choices(choices: Choices) -> None:
    given = {
        "--prefix": (choices.prefix, (LLM_C,)),
        "--tokens-per-file": (choices.tokens_per_file, (LLM_C, MDS)),
        "--sequence-length": (choices.sequence_length, (MDS,)),
    }
    for flag, (value, formats) in given.items():
        if value is not None and choices.format not in formats:
            raise UserError(
                f"{flag} {value} is for --to {' and '.join(formats)} only; --to {choices.format} "
                "has no such thing: leave it out."
            )
    if choices.prefix is not None:
        try:
            check_name(choices.prefix)
        except ValueError as error:
            raise UserError(f"--prefix begins the names of files: {error}.") from error
        if wildcard := re.search(r"[*?\[\]]", choices.prefix):
            raise UserError(
                f"--prefix {choices.prefix} has {wildcard[0]!r} in it, which llm.c takes for a "
                "wildcard: leave it out."
            )


def files(splits: Mapping[str, Kept], settings: Settings) -> Iterator[ExportFile]:
    """Yield the files of all splits; validation, which is small, comes first.

    Raises:
        UserError: There is nothing to export, or it does not fit the format.
    """
    if not splits[TRAIN].tokens:
        raise UserError(
            f"nothing to export: {', '.join(settings.sources)} has no tokens to train on."
        )
    if settings.format == MDS:
        mds.check(splits[TRAIN], settings)
    for split in (VALIDATION, TRAIN):
        # Validation may be too small for a sample.
        if splits[split].tokens >= max(1, settings.sequence_length):
            yield from _FILES[settings.format](splits[split], split, settings)


def notes(splits: Mapping[str, Kept], settings: Settings) -> Iterator[str]:
    """Yield what a person should know of an export that its files do not say."""
    train = splits[TRAIN]
    yield from _left_out(splits, settings)
    if len(train.sources) > 1:
        yield (
            f"{len(train.sources)} sources follow one another, as in the dataset "
            f"({', '.join(train.sources)}): to mix them, export each with --source"
        )
    prompts = sum(kept.prompts for kept in splits.values())
    if prompts and settings.format not in _WITH_LOSS:
        yield (
            f"{prompts:,} documents begin with tokens that carry no loss, which {settings.format} "
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


def _left_out(splits: Mapping[str, Kept], settings: Settings) -> Iterator[str]:
    if removed := sum(kept.removed for kept in splits.values()):
        yield f"{removed:,} removed documents were left out"
    for split, kept in splits.items() if settings.sequence_length else ():
        if rest := kept.tokens % settings.sequence_length:
            yield f"the last {rest:,} tokens of {split} fill no sample, and were left out"


def opened_with(train: Kept, settings: Settings, output: object) -> str:
    """Return how the other project opens an export."""
    dtype = train.tokenizer.token_dtype
    pattern = f"{output}/{settings.prefix}"
    return {
        LLM_C: f'./train_gpt2cu -i "{pattern}_train_*.bin" -j "{pattern}_val_*.bin"',
        DATATROVE: f'DatatroveFolderDataset("{output}/train", seq_len=…, '
        f"token_size={dtype.itemsize})",
        OLMO: f'NumpyFSLDatasetConfig(paths=["{output}/train/*.npy"], expand_glob=True, '
        f"dtype=NumpyDatasetDType.uint{8 * dtype.itemsize}, …)",
        NUMPY: f'numpy.load("{output}/train/000000_{train.sources[0]}.npy", mmap_mode="r")',
        MDS: f'StreamingDataset(local="{output}", split="train", batch_size=…)',
    }[settings.format]
