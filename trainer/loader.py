"""Batches of tensors for one rank, read ahead by a thread.

    dataset = Dataset.open("build/wudao")
    sampler = Sampler(streams_of(dataset), seed=1, num_scatters=1, window=causal_windows(2048))
    loader = Loader(sampler, batch_size=64, rank=rank, world=world)
    for batch in loader:
        loss = model(batch["tokens"], batch["targets"], batch["loss_mask"])

What a rank gets depends on the sampler and on the position alone: the number of samples that all
ranks together have consumed. `state_dict` holds it, and `load_state_dict` goes on from there, on
as many ranks and with as large a batch as the new loader has.
"""

import logging
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import IterableDataset, get_worker_info

from shards.errors import DamageError
from shards.order.onepass import OnePass
from shards.order.sampler import Sampler
from shards.order.scatter import check_layout, rank_slots, scatters_of_rank
from shards.place import NodeShare, require
from trainer.blanks import BlankMaker
from trainer.tensors import Plan, Tensors, WindowReader, datasets_of

_PLANNED = 2048
"""Samples drawn at once: the sampler takes hardly longer for them than for one batch."""
_FOREVER = 2**62
"""Beyond any position."""
_TOGETHER = 1 << 19
"""Tokens that are read at once, in as many batches as that makes: 4 MB as int64."""
_TABLES = frozenset({"piece_windows", "piece_starts", "cu_seqlens"})
"""Tensors without a row for each sample."""

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Loader(IterableDataset[Tensors]):
    """The batches of a rank, without end unless `steps` says when.

    Each is a dict of tensors; b is `batch_size / world`:

        tokens         int64 [b, width]    the text; GLM: width is a multiple of 64, else L
        targets        int64 [b, width]    causal: the next tokens
        loss_mask      bool  [b, width]    what carries loss (`shards.batch.Window`)
        lengths        int64 [b]           tokens of a row without its padding
        keys           int64 [b]           a hash of each sample and epoch: seeds for what is random
        source         int64 [b]           number of the sampler's stream
        piece_windows  int64 [pieces]      GLM, or with boundaries: the row of each piece
        piece_starts   int64 [pieces]      and where it begins there
        cu_seqlens     int32 [pieces + n]  the same as sequences laid end to end (`Batch`)

    With `blanks`, those of a `GlmBatch` instead, and `keys`:

        tokens, targets, loss_mask         [b, n], n a multiple of 64
        position_ids   int64 [b, 2, n]     positions, positions in a block
        sep            int64 [b]           tokens that all tokens attend to
        lengths, keys  int64 [b]           as above
        task           int8  [b]           `trainer.blanks.Task`
        source         int64 [b]           as above
        pieces         int64 [b, n]        document of each token, -1 in the padding; on request

    It may stand in a `DataLoader` with `batch_size=None`: its workers share the batches out, in
    order. By itself it needs none.

    Raises:
        UserError: the layout does not work, or the datasets' tokenizers differ; at construction.
        DamageError: shards of this rank are missing; the message lists them.
    """

    sampler: Sampler
    """Says which window is at which position."""
    _: KW_ONLY
    batch_size: int
    """Samples of all ranks together; `world` divides it."""
    rank: int = 0
    """This process, from 0."""
    world: int = 1
    """Processes that share each batch."""
    boundaries: bool = False
    """Tell where documents begin in causal windows."""
    blanks: BlankMaker | None = None
    """Makes GLM windows into what a GLM is trained on."""
    pin_memory: bool = False
    """Put batches where a GPU copies them from by itself; needs CUDA."""
    steps: int | None = None
    """Batches of the whole run, counted from position 0, also `len`: for loops that must know."""
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
        scatters = scatters_of_rank(num_scatters, world=self.world, rank=self.rank)
        if note is not None:
            scatters = range(num_scatters)
        for dataset in datasets_of(self.sampler.streams):
            try:
                require(dataset, NodeShare(scatters=scatters, num_scatters=num_scatters))
            except DamageError:
                # Where shards were placed on nodes, a batch that does not fit is the first fault.
                check_layout(self.batch_size, num_scatters, world=self.world, placed=True)
                raise
        if note is not None and self.rank == 0:
            _log.warning("%s", note)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch that was taken, for JSON or a checkpoint."""
        return self.sampler.state_dict(self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; iterators made before do not.

        Raises:
            UserError: this loader's sampler does not go on from there.
        """
        self._position = self.sampler.load_state_dict(state)
        self._is_placed = get_worker_info() is not None

    def __iter__(self) -> Iterator[Tensors]:
        worker = get_worker_info()
        position, step = self._position, self.batch_size
        if worker is not None:
            # Worker k of n reads batches k, k + n, …; a state of its own says so already.
            position += 0 if self._is_placed else worker.id * self.batch_size
            self._is_placed = True
            step *= worker.num_workers
        for batch in self._batches(self._plan(position, step)):
            position += step
            self._position = position
            yield batch

    def __len__(self) -> int:
        if self.steps is None:
            raise TypeError("this loader has no end: give steps=")
        return self.steps

    def _batches(self, plans: Iterator[Plan]) -> Iterator[Tensors]:
        """Yield the batches of plans, read by a thread of its own."""
        # A batch that goes to another process takes along all the memory that it is a slice of.
        together = 1 if get_worker_info() is not None else self._num_together()
        if self.ahead == 0 or get_worker_info() is not None:
            while batches := self._read(plans, together):
                yield from batches
            return
        waiting: deque[Future[list[Tensors]]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix="loader") as thread:
            while True:
                while len(waiting) <= -(-self.ahead // together):
                    waiting.append(thread.submit(self._read, plans, together))
                batches = waiting.popleft().result()
                if not batches:
                    return
                yield from batches

    def _num_together(self) -> int:
        """Return how many batches to read at once: small ones cost more calls than copying.

        GLM batches are read one by one in any case.
        """
        if self.boundaries or self.sampler.window.kind != "causal":
            return 1
        share = self.batch_size // self.world * self.sampler.window.length
        return max(1, _TOGETHER // share)

    def _read(self, plans: Iterator[Plan], together: int) -> list[Tensors]:
        """Return the next batches, none at the end; only one thread calls this."""
        some = list(islice(plans, together))
        batches = self._reader.read_all(some) if some else []
        if self.pin_memory:
            return [{name: t.pin_memory() for name, t in batch.items()} for batch in batches]
        return batches

    def _plan(self, position: int, step: int) -> Iterator[Plan]:
        """Yield what to read for the batches at `position`, `position + step` and so on."""
        end = _FOREVER if self.steps is None else self.steps * self.batch_size
        firsts = iter(range(position, end, step))
        num_batches = max(1, _PLANNED * self.world // self.batch_size)
        while some := [self._slots(first) for first in islice(firsts, num_batches)]:
            yield from self._reader.plan(np.array(some))

    def _slots(self, first: int) -> NDArray[np.int64]:
        """Return this rank's positions in the batch that begins at one."""
        slots = rank_slots(
            self.batch_size,
            self.sampler.num_scatters,
            world=self.world,
            rank=self.rank,
            position=first,
        )
        return slots + first


def read_once(
    windows: OnePass,
    *,
    batch_size: int,
    rank: int = 0,
    world: int = 1,
    boundaries: bool = False,
    blanks: BlankMaker | None = None,
) -> Iterator[Tensors]:
    """Yield a rank's part of all windows, each once, as `Loader` does: what validation takes.

    Every rank gets equally many batches of `batch_size / world` rows, so that none waits for one
    that has finished; rows at the end may be empty (length 0) and carry no loss. A window has the
    same blanks each time, whatever the seed of the run.

    Raises:
        ValueError: `world` does not divide `batch_size`.
    """
    if batch_size % world:
        raise ValueError(f"a batch of {batch_size} cannot be dealt to {world} ranks")
    reader = WindowReader(windows, boundaries=boundaries, blanks=blanks)
    for first in range(0, len(windows), batch_size):
        positions = np.arange(first + rank, first + batch_size, world)
        (plan,) = reader.plan(positions[None, positions < len(windows)])
        yield _filled(reader.read(plan), batch_size // world)


def _filled(tensors: Tensors, num_rows: int) -> Tensors:
    """Return a batch with empty rows at its end, up to a number of rows."""
    missing = num_rows - len(tensors["lengths"])
    if missing == 0:
        return tensors
    filled = {
        name: tensor
        if name in _TABLES
        else torch.cat([tensor, tensor.new_full((missing, *tensor.shape[1:]), _fill(name))])
        for name, tensor in tensors.items()
    }
    if "cu_seqlens" in filled:
        ends = filled["cu_seqlens"]
        filled["cu_seqlens"] = torch.cat([ends, ends.new_tensor([filled["tokens"].numel()])])
    return filled


def _fill(name: str) -> int:
    """Return what a tensor has in the padding."""
    return -1 if name == "pieces" else 0
