"""The fp32 weights in a checkpoint of which each rank wrote a part, read one parameter at a time.

DeepSpeed lays the parameters of a group end to end. At ZeRO stages 1 and 2 that vector is cut into
one piece for each rank; at stage 3 every parameter is, and a rank's pieces lie end to end, in
sub-groups of a limited size:

    stage 1, 2    group 0: [a a a a b b|b b c c c .]       rank 0 | rank 1, padded
    stage 3       rank 0: [a a b b c c]   rank 1: [a a b b c .]

The files are mapped into memory, so that a parameter costs memory only while it is used.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shards.errors import DamageError
from shards.storage.files import shape_expected
from trainer.checkpoints import torch_file
from trainer.checkpoints.checkpoint import ADVICE, torch_files
from trainer.checkpoints.torch_file import check, deepspeed_types

_PART = re.compile(r"(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_00_optim_states\.pt")
_MODEL_FILES = "*mp_rank_00_model_states.pt"
_PARTITIONED = 3
"""The ZeRO stage that cuts up every parameter."""


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where the elements of a parameter are."""

    shape: torch.Size
    group: int
    start: int
    """In the vector of its group; at stage 3 in that of each rank, which has one group."""


class ZeroWeights(Mapping[str, Tensor]):
    """The weights of a checkpoint by name; each is joined when it is asked for.

    What else the files hold, Adam's moments above all, is not read.
    """

    def __init__(self, folder: Path) -> None:
        """Open a checkpoint that DeepSpeed wrote at ZeRO stage 1, 2 or 3.

        Raises:
            UserError: a file holds more than tensors and plain values, or cannot be read.
            DamageError: a file is missing, cut short, changed, or does not fit the others.
        """
        self._folder = folder
        for file in torch_files(folder):  # those of other ranks' models, too, which are not read
            check(file, deepspeed_types(), advice=ADVICE)
        paths = _by_rank(folder)
        contents = [_read(path) for path in paths]
        model = _read(_model_file(folder))
        with shape_expected(folder, "bring its files back as they were"):
            states = [content["optimizer_state_dict"] for content in contents]
            # DeepSpeed's bf16 optimizer, which works as stage 1 does, names no stage.
            self._stage = int(states[0].get("zero_stage", 1))
            is_cut = self._stage == _PARTITIONED
            key = "fp32_flat_groups" if is_cut else "single_partition_of_fp32_groups"
            # [rank][group]
            self._parts: list[list[Tensor]] = [list(state[key]) for state in states]
            shapes = [dict(group) for group in model["param_shapes"]]
            if is_cut:
                shapes = [{name: shape for group in shapes for name, shape in group.items()}]
            paddings = states[0].get("param_alignment_paddings") or [[0] * len(g) for g in shapes]
            self._places = dict(_places(shapes, paddings, pieces=len(paths) if is_cut else 1))
        for name in self._places:
            self._pieces(name)
        for path, parts in zip(paths, self._parts, strict=True):
            torch_file.check_values(path, parts, advice=ADVICE)

    @property
    def shapes(self) -> Mapping[str, torch.Size]:
        """Of the weights."""
        return {name: place.shape for name, place in self._places.items()}

    def __getitem__(self, name: str) -> Tensor:
        """Return a parameter, fp32, on the CPU."""
        shape = self._places[name].shape
        return torch.cat(self._pieces(name))[: prod(shape)].view(shape)

    def _pieces(self, name: str) -> list[Tensor]:
        """Return the pieces of a parameter, not read yet.

        Raises:
            DamageError: the files do not hold all of it.
        """
        place = self._places[name]
        numel = prod(place.shape)
        if self._stage == _PARTITIONED:
            share = -(-numel // len(self._parts))
            pieces = [p for groups in self._parts for p in _cut(groups, place.start, share)]
        else:
            partitions = [groups[place.group] for groups in self._parts]
            pieces = list(_cut(partitions, place.start, numel))
        if sum(piece.numel() for piece in pieces) < numel:
            raise DamageError(
                f"{self._folder} does not hold all of {name}: its files do not belong to one "
                "checkpoint. Copy all of them again."
            )
        return pieces

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)


def is_partitioned(folder: Path) -> bool:
    """Return whether each rank wrote a part of the weights in a checkpoint."""
    return any(folder.glob("whole-*.json")) and any(folder.glob("*optim_states.pt"))


def _by_rank(folder: Path) -> list[Path]:
    """Return the files of all ranks' parts.

    Raises:
        DamageError: one is missing.
    """
    paths = {int(m[1]): path for path in folder.iterdir() if (m := _PART.fullmatch(path.name))}
    if not paths:
        raise DamageError(f"{folder} has no *_optim_states.pt of a rank: copy it again.")
    if missing := sorted(set(range(max(paths) + 1)) - set(paths)):
        raise DamageError(
            f"{folder} lacks what rank {missing[0]} wrote: copy it there from that rank's node."
        )
    return [paths[rank] for rank in sorted(paths)]


def _model_file(folder: Path) -> Path:
    """Return a file that tells the shapes of all parameters.

    Raises:
        DamageError: there is none.
    """
    path = min(folder.glob(_MODEL_FILES), default=None)
    if path is None:
        raise DamageError(f"{folder} has no {_MODEL_FILES}: copy it again.")
    return path


def _read(path: Path) -> Mapping[Any, Any]:
    return torch_file.read(path, deepspeed_types(), advice=ADVICE)


def _places(
    groups: Sequence[Mapping[str, Any]], paddings: Sequence[Sequence[int]], *, pieces: int
) -> Iterator[tuple[str, _Place]]:
    for index, (group, padding) in enumerate(zip(groups, paddings, strict=True)):
        start = 0
        for (name, shape), unused in zip(group.items(), padding, strict=True):
            yield str(name), _Place(shape=torch.Size(shape), group=index, start=start)
            start += -(-prod(shape) // pieces) + unused


def _cut(parts: Sequence[Tensor], start: int, length: int) -> Iterator[Tensor]:
    """Yield what lies between two places of vectors that are thought of as one."""
    end = start + length
    for part in parts:
        yield part[max(start, 0) : max(end, 0)]
        start, end = start - part.numel(), end - part.numel()
