"""The samples of a run, for training and for validation, as batches of one rank.

Published datasets are fetched to every node before they are read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import torch

from shards.commands.spelling import expected
from shards.errors import UserError
from shards.manifest import VALIDATION
from shards.published import at_commit, fetch
from shards.reader import Dataset
from shards.sampling.mixture import open_mixture, parse_blend
from shards.sampling.plan import GLM, SamplingPlan
from shards.sampling.sampler import Sampler
from shards.sampling.sequential import SequentialSampler
from shards.sampling.streams import Stream, streams_of
from shards.storage.hub import HubName
from trainer.blanks.objective import BlankInfilling, BlankOptions
from trainer.config import TrainConfig
from trainer.distributed import Ranks
from trainer.loader import Loader, Tensors, datasets_of, read_once
from trainer.metrics import CAUSAL_OBJECTIVE
from trainer.model.sizes import SIZES, ModelConfig

_BOOLS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, kw_only=True, eq=False)
class RunData:
    """The data that a run trains on and is validated on."""

    plan: SamplingPlan
    sampler: Sampler
    held_out: SequentialSampler | None
    """The validation windows to read; None if the data have none."""
    blanks: BlankInfilling | None
    """Makes the blanks; None if the model predicts the next token."""
    isolate: bool
    """Whether the documents of a window are hidden from each other."""
    shape: ModelConfig
    """The shape of the model, with the tokenizer's vocabulary."""

    @property
    def datasets(self) -> list[Dataset]:
        """The datasets that the samples are drawn from."""
        return datasets_of(self.sampler.streams)

    @property
    def tokenizer(self) -> dict[str, str]:
        """The name and checksum of the tokenizer."""
        tokenizer = self.sampler.streams[0].dataset.manifest.tokenizer
        return {"name": tokenizer.name, "sha256": tokenizer.sha256}

    def loader(self, size: int, ranks: Ranks) -> Loader:
        """Return a loader of batches with this global size, which begins at position 0.

        Raises:
            UserError: the batches cannot be divided among the ranks, or shards are missing on this
                node.
        """
        pin_memory = ranks.device.type == "cuda"
        return Loader(self.sampler, pin_memory=pin_memory, **self._layout(size, ranks))

    def check_layout(self, ranks: Ranks) -> None:
        """Check all batch sizes by making a loader of each.

        Raises:
            UserError: samples cannot be divided among the ranks, or shards are missing on this
                node.
        """
        for batch in self.plan.batches:
            self.loader(batch.size, ranks)

    def batches(self, step: int, ranks: Ranks) -> Iterator[Tensors]:
        """Yield this rank's part of each global batch, from the batch after `step` to the last."""
        plan = self.plan
        assert plan.steps is not None  # the command line requires it
        while step < plan.steps:
            changes = (batch.step for batch in plan.batches if batch.step > step)
            until = min(next(changes, plan.steps), plan.steps)
            loader = self.loader(plan.batch_size(step), ranks)
            loader.load_state_dict(self.sampler.state_dict(plan.position_of(step)))
            for batch in islice(loader, until - step):
                yield self._complete(batch)
            step = until

    def validation(self, size: int, ranks: Ranks) -> Iterator[Tensors]:
        """Yield this rank's part of each batch of `size` validation windows, each window once."""
        if self.held_out is None:
            return
        for batch in read_once(self.held_out, **self._layout(size, ranks)):
            yield self._complete(batch)

    def _layout(self, size: int, ranks: Ranks) -> dict[str, Any]:
        """Return the arguments of `Loader` and `read_once` for batches of a size."""
        return {
            "batch_size": size,
            "rank": ranks.rank,
            "world": ranks.world,
            "boundaries": self.isolate and self.blanks is None,
            "blanks": self.blanks,
        }

    def _complete(self, batch: Tensors) -> Tensors:
        """Return a batch; a causal batch gets objectives and, if isolated, document numbers."""
        if self.blanks is not None:
            return batch
        objective = torch.full((len(batch["tokens"]),), CAUSAL_OBJECTIVE, dtype=torch.int8)
        pieces = {"pieces": _document_numbers(batch)} if self.isolate else {}
        return {**batch, **pieces, "objective": objective}


def open_data(config: TrainConfig, plan: SamplingPlan, shape: ModelConfig) -> RunData:
    """Return the data of a run, checked against its model.

    Args:
        config: the options that decide how windows become examples.
        plan: the plan that decides which windows are read.
        shape: the shape of the model; a named one gets the vocabulary of the data's tokenizer.

    Raises:
        UserError: data are missing, or do not fit each other, the window or the model.
    """
    sampler = plan.sampler()
    dataset = datasets_of(sampler.streams)[0]
    shape = _with_vocabulary(shape, dataset, config.model_name)
    _check_window(plan, shape, config.model_name)
    blanks = None
    if plan.objective == GLM:
        blanks = BlankInfilling(
            dataset.manifest.tokenizer.special,
            blank_options(config.blanks),
            max_positions=shape.max_positions,
            sentence_ends=dataset.vocabulary.sentence_end,
            isolate=config.isolate_documents,
        )
    held_out = _validation_streams(plan, sampler)
    return RunData(
        plan=plan,
        sampler=sampler,
        held_out=SequentialSampler(
            held_out, window=plan.window, max_windows=config.eval_samples or None
        )
        if held_out
        else None,
        blanks=blanks,
        isolate=config.isolate_documents,
        shape=shape,
    )


def blank_options(texts: Sequence[str]) -> BlankOptions:
    """Return the options that texts like `bert_prob=0.5` set; the rest keep their defaults.

    Raises:
        UserError: there is no such option, or its value is invalid.
    """
    defaults: dict[str, Any] = {option.name: option.default for option in fields(BlankOptions)}
    values: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in defaults:
            raise UserError(f"--blanks {text}: {expected(name, defaults)}.")
        try:
            is_bool = isinstance(defaults[name], bool)
            values[name] = _BOOLS[value.lower()] if is_bool else float(value)
        except (KeyError, ValueError):
            raise UserError(f"--blanks {text}: {value!r} is no value of {name}.") from None
    return BlankOptions(**values)


def source_names(streams: Sequence[Stream]) -> tuple[str, ...]:
    """Return the source of each stream, whose name is FINGERPRINT/SOURCE."""
    return tuple(stream.name.split("/")[1] for stream in streams)


def _with_vocabulary(shape: ModelConfig, dataset: Dataset, model: str) -> ModelConfig:
    """Return the model's shape; a named one gets the vocabulary of the data's tokenizer."""
    tokenizer = dataset.manifest.tokenizer
    if model in SIZES:
        return shape.with_vocabulary(tokenizer.vocabulary_size)
    if shape.vocab_size < tokenizer.vocabulary_size:
        raise UserError(
            f"{dataset.directory} was made with tokenizer {tokenizer.name}, whose vocabulary has "
            f"{tokenizer.vocabulary_size:,} ids, and {model} has room for "
            f"{shape.vocab_size:,}: set its vocab_size to that or more."
        )
    return shape


def _check_window(plan: SamplingPlan, shape: ModelConfig, model: str) -> None:
    if plan.objective == GLM and not shape.block_positions:
        raise UserError(
            f"--model {model} has no block positions, which blank infilling needs: give "
            "--objective causal, or another model."
        )
    if plan.window.positions > shape.max_positions:
        raise UserError(
            f"--length {plan.length} makes windows of up to {plan.window.positions:,} tokens, and "
            f"--model {model} has {shape.max_positions:,} positions: give a length of at most "
            f"{shape.max_positions:,}."
        )


def _validation_streams(plan: SamplingPlan, sampler: Sampler) -> tuple[Stream, ...]:
    """Return the validation streams of a run's sources.

    Switches to newer data add no streams, so that losses stay comparable.
    """
    names = set(sampler.names)
    if plan.followed is not None:
        # The first stage's streams do not suffice: they lack the streams that are too small to
        # draw.
        opened = open_mixture(plan.mixes[:1], stride=plan.window.stride).streams
        names &= {stream.name for stream in opened}
    candidates = (
        stream
        for data in datasets_of(sampler.streams)
        for stream in streams_of(data, split=VALIDATION)
    )
    wanted = {f"{name}/{VALIDATION}" for name in names}
    return tuple({stream.name: stream for stream in candidates if stream.name in wanted}.values())


def _document_numbers(batch: Tensors) -> torch.Tensor:
    """Return the number of each token's document in its row, int64[b, n]."""
    starts = torch.zeros_like(batch["tokens"])
    starts[batch["piece_windows"], batch["piece_starts"]] = 1
    return starts.cumsum(1)


def fetch_published(
    plan: SamplingPlan, ranks: Ranks, *, saved: SamplingPlan | None = None
) -> SamplingPlan:
    """Return a plan whose published datasets are in the hub's cache on every node.

    All ranks call this. The first rank decides which commit is read: a revision that the plan
    names, else the commit that was read before, else the newest. Then the first rank of each node
    fetches the files.

    Args:
        plan: The plan of the command line.
        ranks: The ranks of the run.
        saved: The plan in the checkpoint.

    Raises:
        CollectiveError: A dataset cannot be fetched.
    """
    if not any(data.published for mix in plan.mixes for data in parse_blend(mix)):
        return plan
    read = _commits(saved)

    def with_commit(name: HubName) -> HubName:
        return at_commit(name if name.revision else read.get(name.repository, name))

    def moved(plan: SamplingPlan, where: Callable[[HubName], object]) -> SamplingPlan:
        return plan.with_data(lambda data: data.downloaded(where))

    pinned = ranks.run_on_rank0(lambda: moved(plan, with_commit))
    here = ranks.run_on_all_ranks(lambda: moved(pinned, fetch) if ranks.local_rank == 0 else None)
    return ranks.run_on_all_ranks(lambda: here or moved(pinned, fetch))


def _commits(saved: SamplingPlan | None) -> dict[str, HubName]:
    """Return the commits that a run has read, by OWNER/NAME."""
    data = (each for mix in saved.mixes for each in parse_blend(mix)) if saved else ()
    names = (HubName.of_snapshot(str(each.directory)) for each in data)
    return {name.repository: name for name in names if name}
