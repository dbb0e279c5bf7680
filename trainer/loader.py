"""Batches of tensors for one rank, read ahead by a thread.

    dataset = Dataset.open("build/wudao")
    sampler = Sampler(streams_of(dataset), seed=1, num_scatters=1, window=causal_windows(2048))
    loader = Loader(sampler, batch_size=64, rank=rank, world=world)
    for batch in loader:
        loss = model(batch["tokens"], batch["targets"], batch["loss_mask"])

What a rank gets depends only on the sampler and the position: the number of samples that all ranks
together have consumed. `state_dict` holds it, and `load_state_dict` continues from it, on whatever
number of ranks and with whatever batch size the new loader has.
"""

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import IterableDataset, get_worker_info

from shards.batch import Batch, read_batch
from shards.errors import DamageError, UserError
from shards.manifest import told_apart
from shards.order.onepass import OnePass
from shards.order.permutation import derive, text_key
from shards.order.sampler import Sampler, WindowLocations
from shards.order.scatter import check_layout, rank_slots, scatters_of_rank
from shards.order.streams import Stream
from shards.place import NodeShare, require
from shards.reader import Dataset, Shard
from shards.windows import WindowVocabulary
from trainer.blanks.blanks import BlankMaker, GlmBatch

Tensors = dict[str, torch.Tensor]

_Integers = NDArray[np.int64]
_LOCATED_AT_ONCE = 2048
"""Samples drawn at once: the sampler hardly takes longer for them than for a single batch."""
_FOREVER = 2**62
"""Beyond any position."""
_TOKENS_AT_ONCE = 1 << 19
"""Tokens read at once, in as many batches as that makes: 4 MB as int64."""
_TABLES = frozenset({"piece_windows", "piece_starts", "cu_seqlens"})
"""Tensors that do not have one row per sample."""

_log = logging.getLogger(__name__)


class BatchLocations(NamedTuple):
    """Where the windows of a batch lie, one row each."""

    streams: list[int]
    shards: list[int]
    windows: _Integers
    phases: _Integers
    keys: NDArray[np.uint64]


@dataclass(eq=False)
class Loader(IterableDataset[Tensors]):
    """The batches of a rank, endless unless `steps` is given.

    Each is a dict of tensors; b is `batch_size / world`:

        tokens         int64 [b, width]    the text; GLM: width is a multiple of 64, else L
        targets        int64 [b, width]    causal: the next tokens
        loss_mask      bool  [b, width]    what carries loss (`shards.batch.Batch`)
        lengths        int64 [b]           tokens of a row without its padding
        keys           int64 [b]           a hash of each sample and epoch, to seed randomness
        source         int64 [b]           number of the sampler's stream
        piece_windows  int64 [pieces]      GLM, or with boundaries: the row of each piece
        piece_starts   int64 [pieces]      and where it begins in that row
        cu_seqlens     int32 [pieces + n]  the same as sequences laid end to end (`Batch`)

    With `blanks`, the tensors of a `GlmBatch` instead, and `keys`:

        tokens, targets, loss_mask         [b, n], n a multiple of 64
        position_ids   int64 [b, 2, n]     positions, positions in a block
        sep            int64 [b]           tokens that all tokens attend to
        lengths, keys  int64 [b]           as above
        task           int8  [b]           `trainer.blanks.blanks.Task`
        source         int64 [b]           as above
        pieces         int64 [b, n]        document of each token, -1 in the padding; on request

    It may be wrapped in a `DataLoader` with `batch_size=None`, whose workers share the batches out,
    in order, but it does not need one.

    Raises:
        UserError: the layout does not work, or the datasets' tokenizers differ; at construction.
        DamageError: shards of this rank are missing; the message lists them.
    """

    sampler: Sampler
    """Decides which window is at which position."""
    _: KW_ONLY
    batch_size: int
    """Samples of all ranks together; `world` divides it."""
    rank: int = 0
    """This process, from 0."""
    world: int = 1
    """Processes that share each batch."""
    parts: int = 1
    """This process stands for so many, from `rank` on: b is `parts` times as large. So one that
    computes faster gets more of the same batch."""
    boundaries: bool = False
    """Report where documents begin in causal windows."""
    blanks: BlankMaker | None = None
    """Turns GLM windows into what a GLM is trained on."""
    pin_memory: bool = False
    """Put batches in page-locked memory, which a GPU copies from asynchronously; needs CUDA."""
    steps: int | None = None
    """Batches of the whole run, counted from position 0; also `len`, for loops that need one."""
    ahead: int = 2
    """Batches that a thread reads while the model works; 0: no thread. The workers of a
    `DataLoader` read ahead themselves."""

    def __post_init__(self) -> None:
        self._check_layout()
        self._reader = WindowReader(self.sampler, boundaries=self.boundaries, blanks=self.blanks)
        self._position = 0
        self._is_placed = False

    def _check_layout(self) -> None:
        num_scatters = self.sampler.num_scatters
        note = check_layout(self.batch_size, num_scatters, world=self.world, placed=False)
        scatters = scatters_read(
            self.batch_size, num_scatters, world=self.world, rank=self.rank, parts=self.parts
        )
        for dataset in datasets_of(self.sampler.streams):
            try:
                require(dataset, NodeShare(scatters=scatters, num_scatters=num_scatters))
            except DamageError:
                # Where shards were placed on nodes, report a batch size that does not fit first.
                check_layout(self.batch_size, num_scatters, world=self.world, placed=True)
                raise
        if note is not None and self.rank == 0:
            _log.warning("%s", note)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch that was taken, for JSON or a checkpoint."""
        return self.sampler.state_dict(self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; iterators made before are not affected.

        Raises:
            UserError: this loader's sampler cannot continue from it.
        """
        self._position = self.sampler.load_state_dict(state)
        self._is_placed = get_worker_info() is not None

    def __iter__(self) -> Iterator[Tensors]:
        worker = get_worker_info()
        position, step = self._position, self.batch_size
        if worker is not None:
            # Worker k of n reads batches k, k + n, …; a loaded state already includes the k.
            position += 0 if self._is_placed else worker.id * self.batch_size
            self._is_placed = True
            step *= worker.num_workers
        for batch in self._batches(self._locations(position, step)):
            position += step
            self._position = position
            yield batch

    def __len__(self) -> int:
        if self.steps is None:
            raise TypeError("this loader has no end: give steps=")
        return self.steps

    def _batches(self, locations: Iterator[BatchLocations]) -> Iterator[Tensors]:
        """Yield the batches at these locations, read ahead by a thread."""
        # A slice that is sent to another process drags the whole array along.
        at_once = 1 if get_worker_info() is not None else self._num_batches_at_once()
        if self.ahead == 0 or get_worker_info() is not None:
            while batches := self._read(locations, at_once):
                yield from batches
            return
        waiting: deque[Future[list[Tensors]]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix="loader") as thread:
            while True:
                while len(waiting) <= -(-self.ahead // at_once):
                    waiting.append(thread.submit(self._read, locations, at_once))
                batches = waiting.popleft().result()
                if not batches:
                    return
                yield from batches

    def _num_batches_at_once(self) -> int:
        """Return how many batches to read at once: for small ones calls cost more than copying.

        GLM batches are always read one by one.
        """
        if self.boundaries or self.sampler.window.kind != "causal":
            return 1
        share = self.batch_size // self.world * self.parts * self.sampler.window.length
        return max(1, _TOKENS_AT_ONCE // share)

    def _read(self, locations: Iterator[BatchLocations], at_once: int) -> list[Tensors]:
        """Return the next batches, none at the end; only one thread calls this."""
        next_locations = list(islice(locations, at_once))
        batches = self._reader.read_all(next_locations) if next_locations else []
        if self.pin_memory:
            return [{name: x.pin_memory() for name, x in batch.items()} for batch in batches]
        return batches

    def _locations(self, position: int, step: int) -> Iterator[BatchLocations]:
        """Yield what to read for the batches at `position`, `position + step` and so on."""
        end = _FOREVER if self.steps is None else self.steps * self.batch_size
        firsts = iter(range(position, end, step))
        num_batches = max(1, _LOCATED_AT_ONCE * self.world // self.batch_size)
        while positions := [self._slots(first) for first in islice(firsts, num_batches)]:
            yield from self._reader.locate(np.array(positions))

    def _slots(self, first: int) -> NDArray[np.int64]:
        """Return this rank's positions in the batch that begins at position `first`."""
        slots = rank_slots(
            self.batch_size,
            self.sampler.num_scatters,
            world=self.world,
            rank=self.rank,
            position=first,
            parts=self.parts,
        )
        return slots + first


def scatters_read(
    batch_size: int, num_scatters: int, *, world: int, rank: int, parts: int = 1
) -> range:
    """Return the scatters that a rank reads in a run of this batch size: all, if it does not fit.

    Raises:
        UserError: the batch cannot be dealt to the ranks.
    """
    if check_layout(batch_size, num_scatters, world=world, placed=False) is not None:
        return range(num_scatters)
    return scatters_of_rank(num_scatters, world=world, rank=rank, parts=parts)


def read_once(  # noqa: PLR0913 - as many as Loader has fields
    windows: OnePass,
    *,
    batch_size: int,
    rank: int = 0,
    world: int = 1,
    parts: int = 1,
    boundaries: bool = False,
    blanks: BlankMaker | None = None,
) -> Iterator[Tensors]:
    """Yield a rank's part of all windows, each exactly once, as `Loader` does: for validation.

    Every rank gets the same number of batches of `batch_size / world * parts` rows, so that none
    waits for one that has finished; rows at the end may be empty (length 0) and carry no loss. A
    window has the same blanks each time, whatever the seed of the run.

    Raises:
        ValueError: `world` does not divide `batch_size`.
    """
    if batch_size % world:
        raise ValueError(f"a batch of {batch_size} cannot be dealt to {world} ranks")
    reader = WindowReader(windows, boundaries=boundaries, blanks=blanks)
    for first in range(0, len(windows), batch_size):
        dealt = np.arange(first, first + batch_size).reshape(-1, world)
        positions = dealt[:, rank : rank + parts].reshape(-1)
        (located,) = reader.locate(positions[None, positions < len(windows)])
        yield _pad_rows(reader.read(located), batch_size // world * parts)


def _pad_rows(tensors: Tensors, num_rows: int) -> Tensors:
    """Return a batch with empty rows appended, up to a number of rows."""
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

    def locate(self, positions: _Integers) -> Iterator[BatchLocations]:
        """Yield the locations of the windows at positions, int64[batches, rows], batch by batch."""
        draws = self._windows.draw(positions.reshape(-1))
        places = self._windows.locate(draws)
        if isinstance(self._windows, Sampler):
            keys = self._windows.keys(draws)
        else:
            keys = _seedless_keys(self._windows.streams, draws.stream, places)
        for i in range(len(positions)):
            rows = slice(i * positions.shape[1], (i + 1) * positions.shape[1])
            yield BatchLocations(
                streams=draws.stream[rows].tolist(),
                shards=places.shard[rows].tolist(),
                windows=places.window[rows],
                phases=places.phase[rows],
                keys=keys[rows],
            )

    def read(self, located: BatchLocations) -> Tensors:
        """Return the located windows, one row each."""
        batch = read_batch(
            [self._shard(*key) for key in zip(located.streams, located.shards, strict=True)],
            located.windows,
            phases=located.phases,
            spec=self._windows.window,
            vocabulary=self._marks,
            boundaries=self._boundaries,
        )
        sources = np.array(located.streams, np.int64)
        if self._blanks is None:
            return _tensors(batch, located.keys, sources)
        return _glm_tensors(self._blanks(batch, located.keys, sources=sources), located.keys)

    def read_all(self, locations: Sequence[BatchLocations]) -> list[Tensors]:
        """Return a batch for each of the locations, read in one go where the result is the same.

        Rows of causal windows are equally wide, so batches are slices of a larger one; a GLM batch
        is as wide as its own longest row.
        """
        if len(locations) == 1 or self._boundaries or self._windows.window.kind != "causal":
            return [self.read(located) for located in locations]
        tensors = self.read(_join(locations))
        edges = np.cumsum([0, *(len(located.streams) for located in locations)]).tolist()
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


def _join(locations: Sequence[BatchLocations]) -> BatchLocations:
    """Return the rows of all batches as one batch."""
    return BatchLocations(
        streams=[stream for located in locations for stream in located.streams],
        shards=[shard for located in locations for shard in located.shards],
        windows=np.concatenate([located.windows for located in locations]),
        phases=np.concatenate([located.phases for located in locations]),
        keys=np.concatenate([located.keys for located in locations]),
    )


def _seedless_keys(
    streams: Sequence[Stream], numbers: NDArray[np.int32], places: WindowLocations
) -> NDArray[np.uint64]:
    """Return a key for each window that depends only on its text, not on a run's seed."""
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
    """Return the marks of the datasets' common vocabulary.

    Raises:
        UserError: two of them have different tokenizers.
    """
    first = datasets[0].manifest.tokenizer
    for dataset in datasets[1:]:
        other = dataset.manifest.tokenizer
        if (other.sha256, other.special) != (first.sha256, first.special):
            one, two = told_apart((first.label, first.sha256), (other.label, other.sha256))
            raise UserError(
                f"{datasets[0].directory} was made with tokenizer {one} and {dataset.directory} "
                f"with {two}, which are not the same: their token ids mean different text. Train "
                "on datasets of one tokenizer."
            )
    return WindowVocabulary.of(datasets[0])
