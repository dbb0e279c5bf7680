"""Windows as tensors: what lies between positions and batches."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from shards.batch import Batch, read_batch
from shards.errors import UserError
from shards.order.onepass import OnePass
from shards.order.permutation import derive, text_key
from shards.order.sampler import Sampler, WindowLocations
from shards.order.streams import Stream
from shards.reader import Dataset, Shard
from shards.windows import WindowVocabulary
from trainer.blanks import BlankMaker, GlmBatch

Tensors = dict[str, torch.Tensor]
_Integers = NDArray[np.int64]


class Plan(NamedTuple):
    """Where the windows of a batch are, a row each."""

    streams: list[int]
    shards: list[int]
    windows: _Integers
    phases: _Integers
    keys: NDArray[np.uint64]


class WindowReader:
    """Reads the windows at given positions; shards are opened when they are first needed.

    Raises:
        UserError: the datasets' tokenizers differ, or blanks do not fit the windows.
    """

    def __init__(
        self, windows: Sampler | OnePass, *, boundaries: bool, blanks: BlankMaker | None
    ) -> None:
        window = windows.window
        if blanks is not None and not (
            window.kind == "glm" and window.positions <= blanks.max_positions
        ):
            raise UserError(
                f"blanks for a model of {blanks.max_positions} positions cannot be made in "
                f"{window.kind} windows of {window.positions} tokens: cut the "
                f"text with glm_windows({blanks.max_positions})."
            )
        self._windows = windows
        self._boundaries = boundaries
        self._blanks = blanks
        self._marks = _common_marks(datasets_of(windows.streams))
        self._open: dict[tuple[int, int], Shard] = {}

    def plan(self, positions: _Integers) -> Iterator["Plan"]:
        """Yield where the windows at positions, int64[batches, rows], are, by batch."""
        draws = self._windows.draw(positions.reshape(-1))
        places = self._windows.locate(draws)
        if isinstance(self._windows, Sampler):
            keys = self._windows.keys(draws)
        else:
            keys = _lasting_keys(self._windows.streams, draws.stream, places)
        for i in range(len(positions)):
            rows = slice(i * positions.shape[1], (i + 1) * positions.shape[1])
            yield Plan(
                streams=draws.stream[rows].tolist(),
                shards=places.shard[rows].tolist(),
                windows=places.window[rows],
                phases=places.phase[rows],
                keys=keys[rows],
            )

    def read(self, plan: "Plan") -> Tensors:
        """Return the windows of a plan, a row each."""
        batch = read_batch(
            [self._shard(*key) for key in zip(plan.streams, plan.shards, strict=True)],
            plan.windows,
            phases=plan.phases,
            spec=self._windows.window,
            vocabulary=self._marks,
            boundaries=self._boundaries,
        )
        sources = np.array(plan.streams, np.int64)
        if self._blanks is None:
            return _tensors(batch, plan.keys, sources)
        return _glm_tensors(self._blanks(batch, plan.keys, sources=sources), plan.keys)

    def read_all(self, plans: Sequence["Plan"]) -> list[Tensors]:
        """Return a batch for each plan, read at once where that makes the same batches.

        Rows of causal windows are equally wide, so that batches are slices of a larger one; a
        GLM batch is as wide as its own longest row.
        """
        if len(plans) == 1 or self._boundaries or self._windows.window.kind != "causal":
            return [self.read(plan) for plan in plans]
        tensors = self.read(_joined(plans))
        edges = np.cumsum([0, *(len(plan.streams) for plan in plans)]).tolist()
        return [
            {name: tensor[first:last] for name, tensor in tensors.items()}
            for first, last in pairwise(edges)
        ]

    def _shard(self, stream: int, number: int) -> Shard:
        key = stream, number
        if key not in self._open:
            owner = self._windows.streams[stream]
            self._open[key] = owner.dataset.shard(owner.shards[number])
        return self._open[key]


def _joined(plans: Sequence[Plan]) -> Plan:
    """Return the rows of all plans as one."""
    return Plan(
        streams=[stream for plan in plans for stream in plan.streams],
        shards=[shard for plan in plans for shard in plan.shards],
        windows=np.concatenate([plan.windows for plan in plans]),
        phases=np.concatenate([plan.phases for plan in plans]),
        keys=np.concatenate([plan.keys for plan in plans]),
    )


def _lasting_keys(
    streams: Sequence[Stream], numbers: NDArray[np.int32], places: WindowLocations
) -> NDArray[np.uint64]:
    """Return a key of each window that depends on its text alone, not on a run's seed."""
    names = np.array([text_key(0, stream.name) for stream in streams], np.uint64)
    return derive(derive(names[numbers], places.shard), places.window)


def _glm_tensors(batch: GlmBatch, keys: NDArray[np.uint64]) -> Tensors:
    arrays = {name: array for name, array in vars(batch).items() if array is not None}
    arrays["keys"] = keys.view(np.int64)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _tensors(batch: Batch, keys: NDArray[np.uint64], sources: _Integers) -> Tensors:
    arrays: dict[str, NDArray[Any]] = {
        "tokens": batch.tokens,
        "loss_mask": batch.loss_mask,
        "lengths": batch.lengths,
        "keys": keys.view(np.int64),
        "source": sources,
    }
    if batch.targets is not None:
        arrays["targets"] = batch.targets
    if batch.pieces is not None:
        arrays["cu_seqlens"] = batch.cu_seqlens()
        arrays["piece_windows"] = batch.pieces.windows
        arrays["piece_starts"] = batch.pieces.starts
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def datasets_of(streams: Sequence[Stream]) -> list[Dataset]:
    """Return the datasets of streams, each once."""
    return list({id(stream.dataset): stream.dataset for stream in streams}.values())


def _common_marks(datasets: Sequence[Dataset]) -> WindowVocabulary:
    """Return the marks of the vocabulary that datasets share.

    Raises:
        UserError: two of them have different tokenizers.
    """
    first = datasets[0].manifest.tokenizer
    for dataset in datasets[1:]:
        other = dataset.manifest.tokenizer
        if (other.sha256, other.special) != (first.sha256, first.special):
            raise UserError(
                f"{datasets[0].directory} was made with tokenizer {first.name} and "
                f"{dataset.directory} with {other.name}, which are not the same: their token ids "
                "mean different text. Train on datasets of one tokenizer."
            )
    return WindowVocabulary.of(datasets[0])
