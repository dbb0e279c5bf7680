"""Lists the shards of datasets for Megatron-LM, each with its weight.

    wudao=0.7  ──▶  0.7 x tokens of the shard / tokens of wudao,  DIR/g0001-…/wudao/00000
    …               one pair per shard, for --train-data-path; validation has a separate list

Megatron fails at an empty shard and does not support removals: empty shards are left out, and
datasets with removed documents are refused.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shards.commands.table import called
from shards.errors import UserError
from shards.maintenance.place import NodeShare, check_files_present
from shards.manifest import TRAIN, VALIDATION
from shards.published import fetch
from shards.reader import Dataset
from shards.sampling.mixture import Blend, check_tokenizers, parse_blend
from shards.storage.files import write_json

_MAX_SHARDS = 32_766
"""The maximum number of shards in a blend: megatron-core numbers them with an int16
(BlendedDataset)."""

_KEYS = {TRAIN: "train", VALIDATION: "valid"}


@dataclass(frozen=True, kw_only=True)
class WeightedShard:
    """A shard in a blend."""

    prefix: Path
    """The absolute path of the shard without .bin and .idx."""
    tokens: int
    weight: float


@dataclass(frozen=True, kw_only=True)
class MegatronBlend:
    """The shards of both splits with their weights."""

    splits: dict[str, tuple[WeightedShard, ...]]
    """The shards of each split that is not empty, by Megatron's names: train and valid."""
    num_empty: int
    """The number of shards that have no tokens and are left out."""

    def arguments(self) -> str:
        """Return the flags of Megatron's training scripts, quoted for a shell."""
        return " ".join(
            f"--{split}-data-path {' '.join(map(shlex.quote, _pairs(shards)))}"
            for split, shards in self.splits.items()
        )

    def save(self, path: Path) -> str:
        """Write the file for `--per-split-data-args-path`; return that flag, quoted for a shell."""
        lists = {split: _pairs(shards) for split, shards in self.splits.items()}
        write_json(path, {**dict.fromkeys(("train", "valid", "test")), **lists})
        return f"--per-split-data-args-path {shlex.quote(str(path.absolute()))}"

    def summary(self) -> str:
        """Return a line with the numbers of tokens and shards."""
        counts = (
            f"{split}: {sum(shard.tokens for shard in shards):,} tokens, shards: {len(shards):,}"
            for split, shards in self.splits.items()
        )
        return "; ".join([*counts, f"empty shards left out: {self.num_empty:,}"])


def _check(splits: dict[str, list[WeightedShard]], data: Sequence[str]) -> None:
    if not splits["train"]:
        raise UserError(f"{' '.join(data)}: there are no training tokens.")
    for shards in splits.values():
        if len(shards) > _MAX_SHARDS:
            raise UserError(
                f"these data have {len(shards):,} shards, and Megatron can blend at most "
                f"{_MAX_SHARDS:,}: make fewer, with --shard-tokens of the pipeline or with "
                f"{called('shards compact')}."
            )
        if any(not 0 < shard.weight < float("inf") for shard in shards):
            raise UserError(
                f"{' '.join(data)}: Megatron needs weights above 0; omit data with the weight 0."
            )


def _pairs(shards: Sequence[WeightedShard]) -> list[str]:
    return [text for shard in shards for text in (f"{shard.weight:.9g}", str(shard.prefix))]


def megatron_blend(data: Sequence[str]) -> MegatronBlend:
    """Return the blends of data, which are written as for `--data` of a training run.

    If no weights are given, the weight of a shard is its number of tokens, so that all text is
    read equally often.

    Raises:
        UserError: data do not exist, some have a weight and others do not, their tokenizers differ,
            documents were removed from them, there is nothing to train on, or there are too many
            shards for Megatron.
        DamageError: a file of a shard is missing or cut short.
    """
    splits: dict[str, list[WeightedShard]] = {key: [] for key in _KEYS.values()}
    num_empty = 0
    given = parse_blend(Blend(start=0, data=tuple(data)))
    local = [each.downloaded(fetch) for each in given]
    datasets = [Dataset.open(each.dataset) for each in local]
    check_tokenizers(datasets)
    for each, dataset in zip(local, datasets, strict=True):
        dataset.check_source(each.source)
        check_files_present(dataset, NodeShare(scatters=(0,), num_scatters=1))
        folder = Path(str(dataset.directory)).absolute()
        for split, key in _KEYS.items():
            entries = dataset.manifest.shards(each.source, split=split)
            if removed := sum(len(dataset.removed.get(entry.path, ())) for entry in entries):
                raise UserError(
                    f"{removed:,} documents are removed from {each}, but Megatron reads whole "
                    f"shards and would train on them. Run {called('shards compact')} "
                    f"{dataset.directory} --erase first."
                )
            filled = [entry for entry in entries if entry.tokens]
            num_empty += len(entries) - len(filled)
            tokens = sum(entry.tokens for entry in filled)
            for entry in filled:
                factor = 1 if each.weight is None else each.weight / tokens
                prefix, weight = folder / entry.path, factor * entry.tokens
                splits[key].append(WeightedShard(prefix=prefix, tokens=entry.tokens, weight=weight))
    _check(splits, data)
    return MegatronBlend(
        splits={key: tuple(shards) for key, shards in splits.items() if shards},
        num_empty=num_empty,
    )
