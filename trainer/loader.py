"""Reads the batches of one rank as tensors; a thread reads ahead.

    dataset = Dataset.open("build/wudao")
    sampler = Sampler(streams_of(dataset), seed=1, num_scatters=1, window=causal_windows(2048))
    loader = Loader(sampler, batch_size=64, rank=rank, world=world)
    for batch in loader:
        loss = model(batch["tokens"], batch["targets"], batch["loss_mask"])

The batches of a rank depend only on the sampler and on the position, the number of samples that all
ranks together have consumed. `state_dict` returns the position, and `load_state_dict` continues
from it, even if the number of ranks or the batch size is different.
"""

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import IterableDataset, get_worker_info

from shards.errors import DamageError, UserError
from shards.maintenance.place import NodeShare, check_files_present
from shards.reader import Dataset, Shard
from shards.sampling.batch import read_batch
from shards.sampling.mixture import check_tokenizers
from shards.sampling.sampler import DrawnWindows, Sampler
from shards.sampling.scatter import check_layout, rank_slots, scatters_of_rank
from shards.sampling.sequential import SequentialSampler
from shards.sampling.streams import Stream
from shards.sampling.windows import WindowVocabulary
from trainer.blanks.objective import BlankInfilling

Tensors = dict[str, torch.Tensor]

_Integers = NDArray[np.int64]
_T = TypeVar("_T")
_DRAWN_AT_ONCE = 2048
"""The number of samples drawn at once; drawing them hardly takes longer than drawing a single
batch."""
_FOREVER = 2**62
"""A number above any position."""
_TOKENS_AT_ONCE = 1 << 19
"""The number of tokens of all causal batches that are read at once, which take 4 MB as int64."""
_TABLES = frozenset({"piece_windows", "piece_starts", "cu_seqlens"})
"""Tensors that do not have one row per sample."""

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Loader(IterableDataset[Tensors]):
    """The batches of a rank, which have no end unless `steps` is given.

    Each batch is a dict of tensors; b is `batch_size / world`:

        tokens         int64 [b, width]    the text; GLM: width is a multiple of 64, else L
        targets        int64 [b, width]    causal: the next tokens
        loss_mask      bool  [b, width]    tokens with loss (`shards.sampling.batch.Batch`)
        lengths        int64 [b]           number of tokens of a row, not counting padding
        keys           int64 [b]           a hash of each sample and epoch, to seed randomness
        source         int64 [b]           number of the sampler's stream
        piece_windows  int64 [pieces]      GLM, or with boundaries: the row of each piece
        piece_starts   int64 [pieces]      the column at which the piece begins in that row
        cu_seqlens     int32 [pieces + n]  the same for rows laid end to end (`Batch`)

    With `blanks`, a batch has the tensors of a `GlmBatch` instead, and `keys`:

        tokens, targets, loss_mask         [b, n], n a multiple of 64
        position_ids   int64 [b, 2, n]     positions, then block positions
        sep            int64 [b]           number of tokens that all tokens attend to
        lengths, keys  int64 [b]           as above
        objective      int8  [b]           `trainer.blanks.objective.Objective`
        source         int64 [b]           as above
        pieces         int64 [b, n]        document of each token, -1 in the padding; if requested

    A loader does not need a `DataLoader`, but works in one with `batch_size=None`, whose workers
    divide the batches among themselves in order.

    Raises:
        UserError: the batch cannot be divided among the ranks, or the datasets' tokenizers differ;
            raised at construction.
        DamageError: shards of this rank are missing; the message lists them.
    """

    sampler: Sampler
    """The sampler, which decides which window is at which position."""
    _: KW_ONLY
    batch_size: int
    """The number of samples of a batch on all ranks together; a multiple of `world`."""
    rank: int = 0
    """The number of this process, from 0."""
    world: int = 1
    """The number of processes that share each batch."""
    boundaries: bool = False
    """Whether causal batches contain the beginnings of documents."""
    blanks: BlankInfilling | None = None
    """Makes the rows that a GLM is trained on from GLM windows."""
    pin_memory: bool = False
    """Whether to put batches into page-locked memory, which a GPU reads asynchronously; needs
    CUDA."""
    steps: int | None = None
    """The number of batches of the whole run, from position 0; also returned by `len`."""
    ahead: int = 2
    """The number of batches that a thread reads ahead; if it is 0, there is no thread. In the
    workers of a `DataLoader` there is no such thread, because they read ahead themselves."""

    def __post_init__(self) -> None:
        self._check_layout()
        self._reader = WindowReader(self.sampler, boundaries=self.boundaries, blanks=self.blanks)
        self._position = 0
        self._state_has_offset = False

    def _check_layout(self) -> None:
        num_scatters = self.sampler.num_scatters
        note = check_layout(self.batch_size, num_scatters, world=self.world, placed=False)
        scatters = scatters_read(self.batch_size, num_scatters, world=self.world, rank=self.rank)
        for dataset in datasets_of(self.sampler.streams):
            try:
                check_files_present(
                    dataset, NodeShare(scatters=tuple(scatters), num_scatters=num_scatters)
                )
            except DamageError:
                # If shards were placed on nodes, first report a batch size that does not fit.
                check_layout(self.batch_size, num_scatters, world=self.world, placed=True)
                raise
        if note is not None and self.rank == 0:
            _log.warning("%s", note)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch that was yielded, as JSON."""
        return self.sampler.state_dict(self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; existing iterators are not affected.

        Raises:
            UserError: this loader's sampler cannot continue from the state.
        """
        self._position = self.sampler.load_state_dict(state)
        self._state_has_offset = get_worker_info() is not None

    def __iter__(self) -> Iterator[Tensors]:
        worker = get_worker_info()
        position, step = self._position, self.batch_size
        if worker is not None:
            # Worker k of n reads batches k, k + n, …; a loaded state already includes this offset.
            position += 0 if self._state_has_offset else worker.id * self.batch_size
            self._state_has_offset = True
            step *= worker.num_workers
        # Sending a slice to a different process would send the whole array.
        at_once = 1 if worker is not None else self._num_batches_at_once()
        blocks = self._read(position, step, at_once)
        if self.ahead and worker is None:
            blocks = _read_ahead(blocks, -(-self.ahead // at_once))
        for batch in chain.from_iterable(blocks):
            position += step
            self._position = position
            yield batch

    def __len__(self) -> int:
        if self.steps is None:
            raise TypeError("this loader has no end: give steps=")
        return self.steps

    @property
    def _share(self) -> int:
        """The number of this rank's rows in a batch."""
        return self.batch_size // self.world

    def _num_batches_at_once(self) -> int:
        """Return the number of batches to read at once; for small batches, calls outweigh copies.

        Rows of causal windows are equally wide, so batches can be slices of a larger batch. A GLM
        batch is only as wide as its own longest row.
        """
        if self.boundaries or self.sampler.window.kind != "causal":
            return 1
        return max(1, _TOKENS_AT_ONCE // (self._share * self.sampler.window.length))

    def _read(self, position: int, step: int, at_once: int) -> Iterator[list[Tensors]]:
        """Yield lists of `at_once` batches, at `position`, `position + step` and so on."""
        end = _FOREVER if self.steps is None else self.steps * self.batch_size
        firsts, share = iter(range(position, end, step)), self._share
        num_drawn = at_once * max(1, _DRAWN_AT_ONCE // (share * at_once))
        while slots := [self._slots(first) for first in islice(firsts, num_drawn)]:
            drawn = self.sampler.draw(np.concatenate(slots))
            for begin in range(0, len(slots), at_once):
                block = self._reader.read(drawn.rows(begin * share, (begin + at_once) * share))
                yield [self._batch(block, i) for i in range(min(at_once, len(slots) - begin))]

    def _batch(self, block: Tensors, number: int) -> Tensors:
        """Return one batch of a block of batches that were read at once."""
        rows = slice(number * self._share, (number + 1) * self._share)
        batch = {name: x if name in _TABLES else x[rows] for name, x in block.items()}
        return {name: x.pin_memory() for name, x in batch.items()} if self.pin_memory else batch

    def _slots(self, first: int) -> NDArray[np.int64]:
        """Return this rank's positions in the batch that begins at position `first`."""
        slots = rank_slots(
            self.batch_size,
            self.sampler.num_scatters,
            world=self.world,
            rank=self.rank,
            position=first,
        )
        return slots + first


def _read_ahead(blocks: Iterator[_T], ahead: int) -> Iterator[_T]:
    """Yield the items of an iterator, which a thread reads ahead."""
    waiting: deque[Future[_T | None]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="loader") as thread:
        while True:
            while len(waiting) <= ahead:
                waiting.append(thread.submit(next, blocks, None))
            block = waiting.popleft().result()
            if block is None:
                return
            yield block


def scatters_read(batch_size: int, num_scatters: int, *, world: int, rank: int) -> range:
    """Return the scatters that a rank reads; all scatters if the batch does not fit them.

    Raises:
        UserError: the batch cannot be divided among the ranks.
    """
    if check_layout(batch_size, num_scatters, world=world, placed=False) is not None:
        return range(num_scatters)
    return scatters_of_rank(num_scatters, world=world, rank=rank)


def read_once(
    windows: SequentialSampler,
    *,
    batch_size: int,
    rank: int = 0,
    world: int = 1,
    boundaries: bool = False,
    blanks: BlankInfilling | None = None,
) -> Iterator[Tensors]:
    """Yield a rank's part of all windows, each window exactly once, for validation.

    The batches are like those of `Loader`. Every rank gets the same number of batches of
    `batch_size / world` rows, so that no rank waits for a rank that has finished; the last rows may
    be empty (length 0) and have no loss. A window has the same blanks each time, whatever the seed
    of the run.

    Raises:
        ValueError: `world` does not divide `batch_size`.
    """
    if batch_size % world:
        raise ValueError(f"a batch of {batch_size} cannot be dealt to {world} ranks")
    reader = WindowReader(windows, boundaries=boundaries, blanks=blanks)
    for first in range(0, len(windows), batch_size):
        positions = np.arange(first + rank, first + batch_size, world)
        drawn = windows.draw(positions[positions < len(windows)])
        yield _pad_rows(reader.read(drawn), len(positions))


def _pad_rows(tensors: Tensors, num_rows: int) -> Tensors:
    """Return a batch with empty rows appended, so that it has `num_rows` rows."""
    missing = num_rows - len(tensors["lengths"])
    if missing == 0:
        return tensors

    def pad(name: str, tensor: torch.Tensor) -> torch.Tensor:
        value = -1 if name == "pieces" else 0
        return torch.cat([tensor, tensor.new_full((missing, *tensor.shape[1:]), value)])

    padded = {
        name: tensor if name in _TABLES else pad(name, tensor) for name, tensor in tensors.items()
    }
    if "cu_seqlens" in padded:
        ends = padded["cu_seqlens"]
        padded["cu_seqlens"] = torch.cat([ends, ends.new_tensor([padded["tokens"].numel()])])
    return padded


class WindowReader:
    """Reads the windows at given positions; shards are opened on first use.

    Raises:
        UserError: the datasets' tokenizers differ, or the blanks do not fit the windows.
    """

    def __init__(
        self,
        windows: Sampler | SequentialSampler,
        *,
        boundaries: bool,
        blanks: BlankInfilling | None,
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
        datasets = datasets_of(windows.streams)
        check_tokenizers(datasets)
        self._vocabulary = WindowVocabulary.of(datasets[0])
        self._open: dict[tuple[int, int], Shard] = {}

    def read(self, drawn: DrawnWindows) -> Tensors:
        """Return the windows at these locations, one row per window."""
        shards = zip(drawn.stream.tolist(), drawn.shard.tolist(), strict=True)
        batch = read_batch(
            [self._shard(*key) for key in shards],
            drawn.window,
            phases=drawn.phase,
            spec=self._windows.window,
            vocabulary=self._vocabulary,
            boundaries=self._boundaries,
        )
        if self._blanks is None:
            names = ("tokens", "targets", "loss_mask", "lengths")
            arrays = {name: getattr(batch, name) for name in names} | {"source": drawn.stream}
            if batch.spans is not None:
                starts = {
                    "piece_windows": batch.spans.windows,
                    "piece_starts": batch.spans.starts,
                }
                arrays |= {"cu_seqlens": batch.cu_seqlens(), **starts}
        else:
            arrays = dict(vars(self._blanks(batch, drawn.key, sources=drawn.stream)))
        arrays["keys"] = drawn.key.view(np.int64)
        return {name: torch.from_numpy(x) for name, x in arrays.items() if x is not None}

    def _shard(self, stream: int, number: int) -> Shard:
        key = stream, number
        if key not in self._open:
            owner = self._windows.streams[stream]
            self._open[key] = owner.dataset.shard(owner.shards[number])
        return self._open[key]


def datasets_of(streams: Sequence[Stream]) -> list[Dataset]:
    """Return the datasets of streams, each dataset once."""
    return list({id(stream.dataset): stream.dataset for stream in streams}.values())
